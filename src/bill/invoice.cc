#include "bill/invoice.h"

#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>

#include "core/invariant.h"
#include "ledger/stamp_order.h"

namespace carve::bill {
namespace {

using ledger::Stamp;

// Holds the exact sum of a slice part: the product of at most 2^63 ns, 2^40 units, a price of 2^50
// millionths, and 2^64 for usable bytes x 10,000 basis points has 217 bits.
using Exact = boost::multiprecision::int256_t;

constexpr Ns hour_ns = 3600 * second_ns;
using U128 = unsigned __int128;

// The terms during one interval, on the record's own time axis (see the header).
struct Segment {
  Ns from = 0;
  Ns to = 0;
  Bytes memory;
  Share share;
};

// The denominator must be below 2^127.
U128 rounded_half_even(U128 numerator, U128 denominator) {
  invariant(denominator != 0, "a device has usable memory");
  U128 quotient = numerator / denominator;
  const U128 rest = (numerator - quotient * denominator) * 2;
  if (rest > denominator || (rest == denominator && quotient % 2 != 0)) ++quotient;
  return quotient;
}

Exact rounded_half_even(const Exact& numerator, const Exact& denominator) {
  invariant(numerator >= 0 && denominator > 0, "a device has usable memory, and no amount is negative");
  Exact quotient, rest;
  boost::multiprecision::divide_qr(numerator, denominator, quotient, rest);
  rest *= 2;
  if (rest > denominator || (rest == denominator && (quotient & 1) != 0)) ++quotient;
  return quotient;
}

// Returns the time of `next` on the record's own time axis. Fails if it cannot follow `last`.
Outcome<Ns> following(Ns moment, const Stamp& last, const Stamp& next, const char* what) {
  if (next.utc_ns < 0 || next.monotonic_ns < 0)
    return failure(FailureKind::invalid_argument, "the time of its {} is negative", what);
  if (ledger::is_earlier(next, last))
    return failure(FailureKind::invalid_argument, "its {} is before the previous time in the record", what);
  Ns sum = 0;
  if (__builtin_add_overflow(moment, ledger::duration_ns(last, next), &sum))
    return failure(FailureKind::invalid_argument, "its {} is after the year 2262", what);
  return sum;
}

Outcome<void> check_terms(const Segment& segment, const BilledDevice& device) {
  if (segment.memory > device.usable)
    return failure(FailureKind::invalid_argument, "it has {} of device {}, which has only {} usable",
                   carve::text(segment.memory).c_str(), carve::text(device.uuid),
                   carve::text(device.usable).c_str());
  if (segment.share > whole_device)
    return failure(FailureKind::invalid_argument, "its compute share of device {} is more than 100%",
                   carve::text(device.uuid));
  return {};
}

// Returns the segments of one part, ordered by time. Empty segments are left out, but at least one is
// returned.
Outcome<std::vector<Segment>> segments(const ledger::UsageRecord& record, const SlicePart& part,
                                       const Stamp& now) {
  if (record.from.utc_ns < 0 || record.from.monotonic_ns < 0)
    return failure(FailureKind::invalid_argument, "the time of its start is negative");
  std::vector<Segment> list;
  const Stamp* last = &record.from;
  Ns moment = record.from.utc_ns;
  const auto add = [&](const Stamp& next, Bytes memory, Share share, const char* what) -> Outcome<void> {
    const auto to = following(moment, *last, next, what);
    if (!to) return tl::unexpected(to.error());
    list.push_back({.from = moment, .to = *to, .memory = memory, .share = share});
    last = &next;
    moment = *to;
    return {};
  };
  // Unequal parts keep their amounts, because the terms of a period contain only those of the first part.
  const bool may_change = record.slice.has_equal_parts();
  for (const ledger::Period& period : record.periods)
    if (const auto good = add(period.to, may_change ? period.terms.memory : part.memory,
                              may_change ? period.terms.share : part.share, "change of terms");
        !good)
      return tl::unexpected(good.error());
  const auto good =
      add(record.to ? *record.to : now, part.memory, part.share, record.to ? "end" : "current time");
  if (!good) return tl::unexpected(good.error());
  const Segment end = list.back();
  std::erase_if(list, [](const Segment& segment) { return segment.from == segment.to; });
  if (list.empty()) list.push_back(end);
  return list;
}

// Returns the dates of the tariffs and the edges of the window in ascending order.
std::vector<Ns> cuts_of(const Tariffs& tariffs, const Window& window) {
  std::vector<Ns> cuts{window.from, window.to};
  for (const Tariff& tariff : tariffs.all()) cuts.push_back(tariff.from);
  std::ranges::sort(cuts);
  return cuts;
}

// Splits the segments at the cuts.
std::vector<Segment> split(std::vector<Segment> list, const std::vector<Ns>& cuts) {
  const auto is_cut = [&](const Segment& segment) {
    const auto cut = std::ranges::upper_bound(cuts, segment.from);
    return cut != cuts.end() && *cut < segment.to;
  };
  if (std::ranges::none_of(list, is_cut)) return list;
  std::vector<Segment> out;
  for (Segment segment : list) {
    for (const Ns cut : cuts) {
      if (cut <= segment.from || cut >= segment.to) continue;
      out.push_back(segment);
      out.back().to = cut;
      segment.from = cut;
    }
    out.push_back(segment);
  }
  return out;
}

// Returns the time that the minimum and the granularity add to an ended record of this duration. Adds nothing
// if the sum exceeds 64 bits, which would take a duration of 292 years.
Ns rounding_up(const Tariff* tariff, Ns duration) {
  invariant(duration >= 0, "no record ends before its grant");
  if (tariff == nullptr) return 0;
  Ns billed = std::max(duration, tariff->minimum);
  const Ns beyond = billed % tariff->granularity;
  if (beyond != 0 && __builtin_add_overflow(billed, tariff->granularity - beyond, &billed)) return 0;
  return billed - duration;
}

// The exact sums of one slice part since its grant.
struct Sums {
  Exact gpu_hours = 0;  // Millionths x hour_ns x 10,000 x usable bytes.
  Exact amount = 0;     // As above, x millionths_per_one.
};

// Returns the divisor of the exact GPU-hours on a device.
Exact divisor_of(const BilledDevice& device) {
  return Exact{whole_device.basis_points} * device.usable.count * hour_ns;
}

// A ratio of at most 1.
struct Ratio {
  uint64_t part = 1;
  uint64_t whole = 1;
};

Ratio ratio_of(const Line& line) {
  switch (line.ratio_by) {
    case RatioBy::share: return {line.share.basis_points, whole_device.basis_points};
    case RatioBy::memory: return {line.memory.count, line.device.usable.count};
    case RatioBy::whole_device: break;
  }
  return {};
}

// Prices the only line of a part without the exact sums if all products fit 127 bits. Returns whether they
// do.
bool price_alone(Line& line) {
  const Ratio ratio = ratio_of(line);
  invariant(ratio.part <= ratio.whole, "a slice part has at most one whole device");
  __int128 hours = line.billed, amount = 0;
  const __int128 hour = __int128{hour_ns} * ratio.whole;  // Below 2^92.
  if (__builtin_mul_overflow(hours, __int128{line.units.count}, &hours) ||
      __builtin_mul_overflow(hours, __int128{ratio.part}, &hours) ||
      __builtin_mul_overflow(hours, __int128{line.price.count}, &amount))
    return false;
  const U128 gpu_hours = rounded_half_even(U128(hours), U128(hour));
  const U128 rounded = rounded_half_even(U128(amount), U128(hour * millionths_per_one));
  if (gpu_hours > INT64_MAX || rounded > INT64_MAX) return false;
  line.gpu_hours = {static_cast<int64_t>(gpu_hours)};
  line.amount = {static_cast<int64_t>(rounded)};
  return true;
}

enum class Lines : uint8_t { one, several };  // Lines of a part.

// Fills in the fields that follow from the terms and the tariff, and adds the line to the sums. Fails if a
// rounded number exceeds 64 bits.
Outcome<void> price(Line& line, const Tariff* tariff, Lines lines, Sums& sums) {
  invariant(line.billed >= 0, "a line has a duration");
  const BilledDevice& device = line.device;
  const bool whole = line.usage->record.slice.exclusive;
  const U128 share = U128{line.share.basis_points} * device.usable.count;
  const U128 memory = U128{whole_device.basis_points} * line.memory.count;
  line.ratio_by = whole ? RatioBy::whole_device : share >= memory ? RatioBy::share : RatioBy::memory;
  const auto& known_units = tariff == nullptr ? shipped_units() : tariff->units;
  const auto units = known_units.find(device.model);
  if (units == known_units.end()) {
    line.unpriced = Unpriced::no_units;
    return {};
  }
  line.units = units->second;
  if (tariff == nullptr)
    line.unpriced = Unpriced::no_tariff;
  else if (!line.usage->prepaid)
    line.price = tariff->price;
  invariant(line.units.count > 0 && line.price.count >= 0, "the numbers of a tariff are validated");
  if (lines == Lines::one && price_alone(line)) return {};
  const Exact scale = Exact{whole_device.basis_points} * device.usable.count;
  const Sums before = sums;
  const Exact added =
      Exact{line.billed} * line.units.count * (whole ? scale : Exact{std::max(share, memory)});
  sums.gpu_hours += added;
  sums.amount += added * line.price.count;
  const auto part = [](const Exact& from, const Exact& to, const Exact& divisor) {
    const Exact rounded = rounded_half_even(to, divisor);
    return from == 0 ? rounded : Exact{rounded - rounded_half_even(from, divisor)};
  };
  const Exact divisor = divisor_of(device);
  const Exact gpu_hours = part(before.gpu_hours, sums.gpu_hours, divisor);
  const Exact amount = part(before.amount, sums.amount, divisor * millionths_per_one);
  invariant(gpu_hours >= 0 && amount >= 0, "the sums of a part never decrease");
  if (gpu_hours > INT64_MAX || amount > INT64_MAX)
    return failure(FailureKind::invalid_argument,
                   "its amount is too large for an invoice line; check units and price of model '{}'",
                   device.model);
  line.gpu_hours = {static_cast<int64_t>(gpu_hours)};
  line.amount = {static_cast<int64_t>(amount)};
  return {};
}

Outcome<const BilledDevice*> device_of(const Usage& usage, const SlicePart& part) {
  const auto found = std::ranges::find(usage.devices, part.device, &BilledDevice::uuid);
  if (found == usage.devices.end())
    return failure(FailureKind::not_found, "its device {} has no description", carve::text(part.device));
  if (found->usable.count == 0 || found->usable > max_usable)
    return failure(FailureKind::invalid_argument,
                   "its device {} has {} of usable memory; must be above 0 and at most {}",
                   carve::text(part.device), carve::text(found->usable).c_str(),
                   carve::text(max_usable).c_str());
  return &*found;
}

void add(Total& sum, const Line& line) {
  invariant(line.billed >= 0 && line.gpu_hours.count >= 0 && line.amount.count >= 0,
            "no number of a line is negative");
  sum.gpu_hours += line.gpu_hours.count;
  sum.amount += line.amount.count;
  if (line.unpriced != Unpriced::no) sum.unpriced_ns += line.billed;
}

// Returns whether the lines of a part add up to its exact sums, rounded once.
bool adds_up(const Total& lines, const Sums& exact, const BilledDevice& device) {
  const Exact divisor = divisor_of(device);
  return lines.gpu_hours == rounded_half_even(exact.gpu_hours, divisor) &&
         lines.amount == rounded_half_even(exact.amount, divisor * millionths_per_one);
}

// The data that all lines of an invoice share.
struct Terms {
  const Tariffs& tariffs;
  const Window& window;
  const Stamp& now;
  std::vector<Ns> cuts;
};

// Adds the lines of one part of a slice that are inside the window.
Outcome<void> add_lines(const Usage& usage, const SlicePart& slice_part, const Terms& all,
                        std::vector<Line>& lines) {
  const Window& window = all.window;
  const auto device = device_of(usage, slice_part);
  if (!device) return tl::unexpected(device.error());
  auto terms = segments(usage.record, slice_part, all.now);
  if (!terms) return tl::unexpected(terms.error());
  for (const Segment& segment : *terms)
    if (const auto good = check_terms(segment, **device); !good) return good;
  Sums sums;
  Total of_lines;
  const std::vector<Segment> list = split(std::move(*terms), all.cuts);
  for (size_t i = 0; i < list.size(); ++i) {
    const Segment& segment = list[i];
    const bool is_last = i + 1 == list.size();
    const Tariff* tariff = all.tariffs.at(segment.from);
    invariant(segment.from <= segment.to && (is_last || segment.to == list[i + 1].from),
              "the lines of a part follow one another");
    invariant(segment.from == segment.to || all.tariffs.at(segment.to - 1) == tariff,
              "a line has only one tariff");
    Line line{.usage = &usage, .device = **device, .from = segment.from, .to = segment.to};
    line.open = is_last && !usage.record.to;
    line.billed = segment.to - segment.from;
    if (is_last && usage.record.to) line.billed += rounding_up(tariff, segment.to - usage.record.from.utc_ns);
    line.memory = segment.memory;
    line.share = segment.share;
    const Lines count = list.size() == 1 ? Lines::one : Lines::several;
    if (const auto good = price(line, tariff, count, sums); !good) return good;
    add(of_lines, line);
    const bool inside = segment.from >= window.from && segment.from < window.to;
    invariant(!inside || segment.to <= window.to, "no line crosses the edge of the window");
    if (inside && line.billed > 0) lines.push_back(std::move(line));
  }
  invariant(list.size() == 1 || adds_up(of_lines, sums, **device), "the lines add up to their part's sum");
  return {};
}

// Adds the lines of all parts, or none of them if one fails.
Outcome<void> add_lines(const Usage& usage, const Terms& all, std::vector<Line>& lines) {
  const Slice& slice = usage.record.slice;
  if (slice.parts.empty()) return failure(FailureKind::invalid_argument, "its slice has no parts");
  const size_t before = lines.size();
  for (const SlicePart& part : slice.parts)
    if (auto added = add_lines(usage, part, all, lines); !added) {
      lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(before), lines.end());
      return added;
    }
  return {};
}

std::string group(const Line& line, GroupBy by) {
  switch (by) {
    case GroupBy::account: return line.usage->account;
    case GroupBy::queue: return line.usage->queue;
    case GroupBy::workload:
      return fmt::format("{}/{}/{}", line.usage->name_space, line.usage->kind, line.usage->name);
    case GroupBy::device: break;
  }
  return carve::text(line.device.uuid);
}

// Formats a quotient with six decimals, rounded half to even.
std::string quotient(const Exact& numerator, const Exact& denominator) {
  return text(static_cast<__int128>(rounded_half_even(numerator * millionths_per_one, denominator)));
}

// Formats a number without trailing zeros: "10", "2.5".
std::string shortened(std::string number) {
  number.erase(number.find_last_not_of('0') + 1);
  if (number.ends_with('.')) number.pop_back();
  return number;
}

std::string memory_ratio(const Line& line) {
  const Bytes usable = line.device.usable;
  const uint64_t unit = (line.memory.count | usable.count) % (1_MiB).count == 0 ? (1_MiB).count : 1;
  return fmt::format("{}/{} = {}", line.memory.count / unit, usable.count / unit,
                     quotient(line.memory.count, usable.count));
}

}  // namespace

Invoice invoice(std::span<const Usage> records, const Tariffs& tariffs, const Window& window,
                const Stamp& now) {
  Invoice out;
  if (!tariffs.all().empty()) out.currency = tariffs.all().front().currency;
  std::vector<const Usage*> sorted;
  sorted.reserve(records.size());
  for (const Usage& usage : records) sorted.push_back(&usage);
  const auto key = [](const Usage* usage) {
    return std::pair{std::string_view(usage->node), usage->record.id};
  };
  if (!std::ranges::is_sorted(sorted, {}, key)) std::ranges::stable_sort(sorted, {}, key);
  const Terms all{.tariffs = tariffs, .window = window, .now = now, .cuts = cuts_of(tariffs, window)};
  const auto refuse = [&](const Usage* usage, std::string_view why) {
    out.refused.push_back(
        {usage, fmt::format("record {} of node {}: {}", usage->record.id, usage->node, why)});
  };
  for (auto first = sorted.begin(), end = first; first != sorted.end(); first = end) {
    end =
        std::find_if_not(first, sorted.end(), [&](const Usage* usage) { return key(usage) == key(*first); });
    if (std::any_of(std::next(first), end, [&](const Usage* usage) { return *usage != **first; })) {
      const std::string why = fmt::format("{} different records have this id", end - first);
      std::for_each(first, end, [&](const Usage* usage) { refuse(usage, why); });
    } else if (const auto added = add_lines(**first, all, out.lines); !added) {
      refuse(*first, added.error().message);
    }
  }
  return out;
}

Total total(std::span<const Line> lines) {
  Total sum;
  for (const Line& line : lines) add(sum, line);
  return sum;
}

std::map<std::string, Total> totals(std::span<const Line> lines, GroupBy by) {
  std::map<std::string, Total> groups;
  for (const Line& line : lines) add(groups[group(line, by)], line);
  Total all;
  for (const auto& [name, of_group] : groups) {
    all.gpu_hours += of_group.gpu_hours;
    all.amount += of_group.amount;
    all.unpriced_ns += of_group.unpriced_ns;
  }
  invariant(all == total(lines), "the groups add up to the total");
  return groups;
}

SmallerSlice smaller_slice(const Line& line, Ns busy, Bytes peak) {
  const bool whole = line.usage->record.slice.exclusive;
  const Bytes granted = whole ? line.device.usable : line.memory;
  const Share granted_share = whole ? whole_device : line.share;
  constexpr uint64_t mib = (1_MiB).count;
  SmallerSlice out{.memory = granted, .share = granted_share, .gpu_hours = {}, .amount = {}};
  const uint64_t mibs = peak.count / mib + (peak.count % mib == 0 ? 0 : 1);
  if (const uint64_t needed = std::max<uint64_t>(mibs, min_smaller_memory.count / mib);
      needed < granted.count / mib)
    out.memory = Bytes{needed * mib};
  if (line.to > line.from && granted_share.basis_points != 0) {
    const __int128 hundred = __int128{std::max<Ns>(busy, 0)} * 100, time = line.to - line.from;
    const __int128 percent =
        std::max<__int128>((hundred + time - 1) / time, min_smaller_share.basis_points / 100);
    if (percent * 100 < granted_share.basis_points) out.share = Share{static_cast<uint32_t>(percent * 100)};
  }
  invariant(out.memory <= granted && out.share <= granted_share,
            "a smaller slice does not exceed the granted one");
  if (line.unpriced == Unpriced::no_units) return out;
  const Exact by_share = Exact{out.share.basis_points} * line.device.usable.count;
  const Exact by_memory = Exact{whole_device.basis_points} * out.memory.count;
  const Exact hours = Exact{line.billed} * line.units.count * std::max(by_share, by_memory);
  const auto rounded = [](const Exact& sum, const Exact& divisor, Millionths most) {
    const Exact count = rounded_half_even(sum, divisor);
    return count > most.count ? most : Millionths{static_cast<int64_t>(count)};  // Rounded like the line's.
  };
  const Exact divisor = divisor_of(line.device);
  out.gpu_hours = rounded(hours, divisor, line.gpu_hours);
  out.amount = rounded(hours * line.price.count, divisor * millionths_per_one, line.amount);
  return out;
}

std::string explain(const Line& line) {
  std::string hours = quotient(line.billed, hour_ns) + " h";
  if (const Ns added = line.billed - (line.to - line.from); added > 0)
    hours += fmt::format(" ({} h, plus {} h for the minimum and granularity)",
                         quotient(line.to - line.from, hour_ns), quotient(added, hour_ns));
  if (line.unpriced == Unpriced::no_units)
    return fmt::format("{}: no price; model '{}' has no GPU-hour units; add them to the tariff", hours,
                       line.device.model);
  std::string ratio = "1";
  if (line.ratio_by != RatioBy::whole_device && line.share.basis_points == 0) {
    ratio = fmt::format("({})", memory_ratio(line));
  } else if (line.ratio_by != RatioBy::whole_device) {
    const ShareText share = carve::text(line.share);
    const std::string_view percent = share;
    ratio = fmt::format("max({}/100 = {}, {})", percent.substr(0, percent.size() - 1),
                        quotient(line.share.basis_points, whole_device.basis_points), memory_ratio(line));
  }
  return fmt::format(
      "{} x {} x {} = {}{}", hours, shortened(text(line.units)), ratio, text(line.gpu_hours),
      line.unpriced == Unpriced::no_tariff ? "; not priced, because no tariff was in effect" : "");
}

}  // namespace carve::bill
