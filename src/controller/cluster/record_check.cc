#include "controller/cluster/record_check.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/label.h"
#include "core/utc.h"
#include "wire/api/json.h"

namespace carve::controller {
namespace {

using ledger::Stamp;
using ledger::UsageRecord;

constexpr size_t max_parts = 16, max_periods = 10'000, max_boot_id_bytes = 64;
constexpr int64_t max_monotonic_ns = int64_t{1} << 60;             // 36 years.
constexpr int64_t first_utc_ns = 1'577'836'800 * bill::second_ns;  // 2020: no record is older.

bool is_sound(const Stamp& stamp) {
  return stamp.utc_ns >= first_utc_ns && stamp.utc_ns < INT64_MAX / 2 && stamp.monotonic_ns >= 0 &&
         stamp.monotonic_ns <= max_monotonic_ns && stamp.boot_id.size() <= max_boot_id_bytes;
}

bool is_sound(const ledger::Terms& terms) {
  return terms.memory <= bill::max_usable && terms.share <= whole_device;
}

// Returns why no record can be like this. Empty if one can.
std::string impossible(const UsageRecord& record) {
  const Slice& slice = record.slice;
  if (record.id == 0 || record.id > uint64_t{INT64_MAX}) return "its id is out of range";
  if (!slice.holder) return "it has neither a pod nor a claim";
  if (const auto good = check(slice.holder); !good) return good.error().message;
  if (slice.parts.empty() || slice.parts.size() > max_parts)
    return fmt::format("it has {} parts; 1 to {} are possible", slice.parts.size(), max_parts);
  for (const SlicePart& part : slice.parts)
    if (part.usable > bill::max_usable || part.memory > bill::max_usable || part.share > whole_device ||
        part.model.size() > max_label_bytes || (part.usable.count != 0 && part.memory > part.usable))
      return "a part has an impossible amount";
  if (slice.account.empty() || slice.account.size() > max_label_bytes)
    return "its account is missing or too long";
  if (slice.name.size() > max_label_bytes) return "its slice's name is too long";
  if (slice.labels.size() > max_labels) return fmt::format("it has more than {} labels", max_labels);
  for (const auto& [key, value] : slice.labels)
    if (key.size() > max_label_bytes || value.size() > max_label_bytes) return "a label is too long";
  if (record.periods.size() > max_periods) return "it has too many periods";
  for (const ledger::Period& period : record.periods)
    if (!is_sound(period.to) || !is_sound(period.terms)) return "a period has an impossible time or amount";
  if (!is_sound(record.from) || (record.to && !is_sound(*record.to))) return "it has an impossible time";
  if (record.busy_ns > static_cast<uint64_t>(INT64_MAX) || record.peak_bytes > bill::max_usable.count)
    return "it was used impossibly much";
  return "";
}

// Returns whether the record begins or ends later than the clocks can differ.
bool is_from_the_future(const UsageRecord& record, int64_t now_ns) {
  const int64_t latest = now_ns + max_clock_difference_ns;
  // The sum of the durations may exceed int64_t, so utc_end_ns() cannot be used yet.
  int64_t end = record.from.utc_ns;
  const Stamp* last = &record.from;
  for (const ledger::Period& period : record.periods) {
    if (__builtin_add_overflow(end, ledger::duration_ns(*last, period.to), &end)) return true;
    last = &period.to;
  }
  if (record.to && __builtin_add_overflow(end, ledger::duration_ns(*last, *record.to), &end)) return true;
  return end > latest;
}

// Checks the ids of a response.
Outcome<void> check_order(const std::vector<UsageRecord>& records, const LedgerCopy::Request& request) {
  const size_t limit = request.ids.empty() ? max_records_per_page : request.ids.size();
  if (records.size() > limit)
    return failure(FailureKind::failed_precondition, "it sent {} records instead of at most {}",
                   records.size(), limit);
  uint64_t before = request.after;
  for (const UsageRecord& record : records) {
    const bool is_asked =
        request.ids.empty() || std::ranges::find(request.ids, record.id) != request.ids.end();
    if (request.ids.empty() && record.id <= before)
      return failure(FailureKind::failed_precondition, "it sent record {} after record {}", record.id,
                     before);
    if (!is_asked)
      return failure(FailureKind::failed_precondition, "it sent record {}, which was not requested",
                     record.id);
    before = record.id;
  }
  if (request.ids.empty()) return {};
  std::vector<uint64_t> ids;
  for (const UsageRecord& record : records) ids.push_back(record.id);
  std::ranges::sort(ids);
  if (const auto twice = std::ranges::adjacent_find(ids); twice != ids.end())
    return failure(FailureKind::failed_precondition, "it sent record {} twice", *twice);
  return {};
}

}  // namespace

std::string usage_query(const LedgerCopy::Request& request) {
  return request.ids.empty() ? fmt::format("after={}&limit={}", request.after, max_records_per_page)
                             : fmt::format("ids={}", fmt::join(request.ids, ","));
}

Outcome<CheckedPage> check_page(const std::string& body, const LedgerCopy::Request& request,
                                const std::string& node, const PodEvidence& evidence, int64_t heard_ns,
                                int64_t now_ns) {
  if (body.size() > max_page_bytes)
    return failure(FailureKind::failed_precondition, "its response has more than {} bytes", max_page_bytes);
  auto page = api::read<ledger::UsagePage>(body, api::Reading::lenient);
  if (!page)
    return failure(FailureKind::failed_precondition, "its response cannot be read: {}", page.error());
  if (page->query != usage_query(request))
    return failure(FailureKind::failed_precondition, "it responded to another request: '{}'",
                   page->query.substr(0, 80));
  if (const auto good = check_order(page->records, request); !good) return tl::unexpected(good.error());
  CheckedPage out;
  const bool is_known = !request.ids.empty();
  for (UsageRecord& record : page->records) {
    std::string reason = impossible(record);
    if (reason.empty() && is_from_the_future(record, now_ns)) {
      out.undecided = fmt::format("record {} is from the future ({}); check the node's clock", record.id,
                                  text_utc(record.from.utc_ns));
      break;
    }
    if (reason.empty()) {
      auto decision = evidence.check(record, node, heard_ns);
      // A stored record was checked before, and LedgerCopy compares its account.
      if (decision.verdict == PodEvidence::Verdict::undecided && !is_known) {
        out.undecided = fmt::format("record {}: {}", record.id, decision.reason);
        break;
      }
      if (decision.verdict == PodEvidence::Verdict::refused) reason = std::move(decision.reason);
    }
    if (is_known && !reason.empty())
      return failure(FailureKind::failed_precondition, "record {} has changed: {}", record.id, reason);
    out.last = std::max(out.last, record.id);
    if (reason.empty()) {
      out.records.push_back(std::move(record));
      continue;
    }
    ++out.refused;
    if (out.refusals.size() < max_refusals)
      out.refusals.push_back(fmt::format("record {}: {}", record.id, reason));
  }
  if (is_known && !out.undecided.empty())
    return failure(FailureKind::failed_precondition, "{}", out.undecided);
  return out;
}

}  // namespace carve::controller
