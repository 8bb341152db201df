#include "controller/billing/bill_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/fields.h"
#include "os/clock.h"
#include "wire/api/json.h"

namespace carve::controller {
namespace {

using bill::Line;

constexpr size_t records_at_once = 512;
constexpr bill::Ns hour_ns = 3600 * bill::second_ns;
constexpr std::string_view other_group = "-";  // For lines without the key that they are grouped by.

// A total, and the part of it that was used.
struct Sum {
  bill::Total total;
  __int128 used = 0;  // Millionths of GPU-hours.
  uint64_t lines = 0;
};

// Returns numerator / denominator in millionths, rounded half to even. Neither may be negative, and the
// denominator must not be 0.
__int128 millionths_of(__int128 numerator, __int128 denominator) {
  const __int128 scaled = numerator * bill::millionths_per_one;
  __int128 out = scaled / denominator;
  const __int128 rest = (scaled % denominator) * 2;
  if (rest > denominator || (rest == denominator && out % 2 != 0)) ++out;
  return out;
}

// Returns the busy time of the line, which is a part of the record's: that covers all parts and the whole
// time.
bill::Ns busy_of(const Line& line, bill::Ns record_ns) {
  const ledger::UsageRecord& record = line.usage->record;
  const size_t parts = std::max<size_t>(record.slice.parts.size(), 1);
  if (record_ns <= 0) return 0;
  const __int128 busy_ns = __int128{record.busy_ns} * std::min(line.to - line.from, record_ns) / record_ns /
                           static_cast<__int128>(parts);
  return static_cast<bill::Ns>(std::min<__int128>(busy_ns, INT64_MAX));
}

// Returns how much of its devices the slice used on this line, in millionths of GPU-hours.
__int128 used_of(const Line& line, bill::Ns busy_ns) {
  return millionths_of(busy_ns, hour_ns) * line.units.count / bill::millionths_per_one;
}

// The key by which lines are grouped. Lines without the key form one group, which differs from a group named
// '-'.
struct GroupKey {
  bool is_rest = false;
  std::string name;

  friend auto operator<=>(const GroupKey&, const GroupKey&) = default;
};

GroupKey group_of(const std::string& name) { return {.is_rest = name == other_group, .name = name}; }

std::string key_of(const Line& line, BillBy by) {
  const bill::Usage& usage = *line.usage;
  const std::string name = usage.name_space.empty() ? usage.name : usage.name_space + "/" + usage.name;
  switch (by) {
    case BillBy::account: return usage.account;
    case BillBy::queue: return usage.queue.empty() ? std::string(other_group) : usage.queue;
    case BillBy::job:
      if (usage.kind == "raycluster") return usage.kind + " " + name;
      return usage.kind == "job" ? name : std::string(other_group);
    case BillBy::service:
      return usage.kind == "service" || usage.kind == "application" ? usage.kind + " " + name
                                                                    : std::string(other_group);
    case BillBy::device: break;
  }
  return carve::text(line.device.uuid);
}

GroupKey group_of(const Line& line, const BillQuery& query) {
  if (query.by_label.empty()) return group_of(key_of(line, query.by));
  const auto& labels = line.usage->record.slice.labels;
  const auto label = labels.find(query.by_label);
  if (label == labels.end()) return group_of(std::string(other_group));
  return {.is_rest = false, .name = label->second};
}

std::string moment(bill::Ns ns) { return os::rfc3339(ns, os::Decimals::nanoseconds); }

const char* ratio_by_text(bill::RatioBy by) {
  switch (by) {
    case bill::RatioBy::whole_device: return "whole device";
    case bill::RatioBy::share: return "share";
    case bill::RatioBy::memory: break;
  }
  return "memory";
}

std::string ratio_of(const Line& line) {
  if (line.ratio_by == bill::RatioBy::whole_device) return "1.000000";
  if (line.ratio_by == bill::RatioBy::share)
    return bill::text(millionths_of(line.share.basis_points, whole_device.basis_points));
  return bill::text(millionths_of(line.memory.count, line.device.usable.count));
}

std::string line_id(const Line& line) {
  const auto& parts = line.usage->record.slice.parts;
  const auto part = std::ranges::find(parts, line.device.uuid, &SlicePart::device);
  return fmt::format("{}.{}.{}", line.usage->node, line.usage->record.id, part - parts.begin());
}

api::BillLine shown(const Line& line, __int128 used, const bill::SmallerSlice& smaller) {
  const bill::Usage& usage = *line.usage;
  const bool is_priced = line.unpriced == bill::Unpriced::no;
  return {.id = line_id(line),
          .account = usage.account,
          .namespace_ = usage.name_space,
          .kind = usage.kind,
          .name = usage.name,
          .pod = usage.record.slice.name,
          .queue = usage.queue,
          .device = carve::text(line.device.uuid),
          .model = line.device.model,
          .from = moment(line.from),
          .to = moment(line.to),
          .open = line.open,
          .seconds = bill::text(millionths_of(line.billed, bill::second_ns)),
          .memory_bytes = line.memory.count,
          .usable_bytes = line.device.usable.count,
          .share_bp = line.share.basis_points,
          .ratio = ratio_of(line),
          .ratio_by = ratio_by_text(line.ratio_by),
          .units = line.unpriced == bill::Unpriced::no_units ? "" : bill::text(line.units),
          .gpu_hours = bill::text(line.gpu_hours),
          .price = is_priced ? bill::text(line.price) : "",
          .amount = bill::text(line.amount),
          .used_gpu_hours = bill::text(used),
          .peak_bytes = usage.record.peak_bytes,
          .smaller_memory_bytes = smaller.memory.count,
          .smaller_share_bp = smaller.share.basis_points,
          .smaller_gpu_hours = bill::text(smaller.gpu_hours),
          .smaller_amount = bill::text(smaller.amount),
          .unpriced = is_priced ? "" : "no tariff",
          .labels = usage.record.slice.labels,
          .formula = bill::explain(line)};
}

api::BillSum shown(const GroupKey& key, const Sum& sum) {
  return {.key = key.name,
          .is_rest = key.is_rest,
          .lines = sum.lines,
          .gpu_hours = bill::text(sum.total.gpu_hours),
          .amount = bill::text(sum.total.amount),
          .used_gpu_hours = bill::text(sum.used),
          .unpriced_seconds = bill::text(millionths_of(sum.total.unpriced_ns, bill::second_ns))};
}

class Report {
 public:
  Report(const bill::Tariffs& tariffs, const BillQuery& query) : tariffs_(tariffs), query_(query) {}

  // Adds the records. Open records are counted until `now`.
  void add(const std::vector<bill::Usage>& records, const ledger::Stamp& now) {
    const bill::Invoice invoice = bill::invoice(records, tariffs_, query_.window, now);
    for (const bill::RefusedUsage& refused : invoice.refused)
      if (out_.refused.size() < max_refused_records) out_.refused.push_back(refused.message);
    for (const Line& line : invoice.lines) add(line, now);
  }
  bool is_full() const { return out_.lines.size() > max_bill_lines || groups_.size() > max_bill_groups; }

  api::Bill finish() {
    Sum all;
    for (const auto& [key, sum] : groups_) {
      all.total.gpu_hours += sum.total.gpu_hours;
      all.total.amount += sum.total.amount;
      all.total.unpriced_ns += sum.total.unpriced_ns;
      all.used += sum.used;
      all.lines += sum.lines;
      out_.items.push_back(shown(key, sum));
    }
    out_.total = shown(GroupKey{.is_rest = false, .name = "total"}, all);
    if (!tariffs_.all().empty()) out_.currency = tariffs_.all().front().currency;
    out_.by = query_.by_label.empty() ? std::string(carve::text(query_.by)) : "label:" + query_.by_label;
    out_.from = moment(query_.window.from);
    out_.to = moment(query_.window.to);
    std::ranges::sort(out_.lines, {}, [](const api::BillLine& line) { return std::tie(line.from, line.id); });
    if (query_.only_idle)
      std::ranges::stable_sort(out_.lines, std::greater{},
                               [&](const api::BillLine& line) { return savings_.at(line.id + line.from); });
    return std::move(out_);
  }

 private:
  void add(const Line& line, const ledger::Stamp& now) {
    if (!query_.line.empty() && line_id(line) != query_.line) return;
    const ledger::UsageRecord& record = line.usage->record;
    const bill::Ns busy = busy_of(line, ledger::duration_ns(record.from, record.to ? *record.to : now));
    const __int128 used = used_of(line, busy);
    const bool is_shown = query_.with_lines || query_.only_idle || !query_.line.empty();
    bill::SmallerSlice smaller;
    if (is_shown) smaller = bill::smaller_slice(line, busy, Bytes{record.peak_bytes});
    if (query_.only_idle && smaller.gpu_hours >= line.gpu_hours) return;
    Sum& sum = groups_[group_of(line, query_)];
    sum.total.gpu_hours += line.gpu_hours.count;
    sum.total.amount += line.amount.count;
    if (line.unpriced != bill::Unpriced::no) sum.total.unpriced_ns += line.billed;
    sum.used += used;
    ++sum.lines;
    if (!is_shown) return;
    out_.lines.push_back(shown(line, used, smaller));
    if (query_.only_idle)
      savings_[out_.lines.back().id + out_.lines.back().from] =
          line.gpu_hours.count - smaller.gpu_hours.count;
  }

  const bill::Tariffs& tariffs_;
  const BillQuery& query_;
  std::map<GroupKey, Sum> groups_;
  std::map<std::string, int64_t>
      savings_;  // Millionths of GPU-hours, keyed by the id and the begin of a line.
  api::Bill out_;
};

}  // namespace

Outcome<api::Bill> make_bill(UsageStore& store, const bill::Tariffs& tariffs, const BillQuery& query,
                             const ledger::Stamp& now) {
  Report report(tariffs, query);
  std::vector<bill::Usage> batch;
  Failure unreadable;
  std::map<std::pair<std::string, uint32_t>, ledger::Stamp> seen;
  const auto seen_at = [&](const UsageRow& row) {
    auto [at, is_new] = seen.try_emplace({row.node, row.ledger}, now);
    if (!is_new) return at->second;
    if (const auto position = store.position(row.node);
        position && position->ledger == row.ledger && !position->seen.boot_id.empty())
      at->second = position->seen;
    return at->second;
  };
  const bool needs_labels =
      !query.by_label.empty() || query.with_lines || query.only_idle || !query.line.empty();
  const auto done = store.each(query.window, [&](UsageRow&& row) {
    if (!query.account.empty() && row.account != query.account) return true;
    if (query.may_see && !query.may_see(row)) return true;
    if (query.selects && !query.selects(labels_of(row))) return true;
    if (!needs_labels) row.labels.clear();
    const bool is_open = row.end_ns == 0;
    const ledger::Stamp until = is_open ? seen_at(row) : ledger::Stamp{};
    auto usage = usage_of(std::move(row));
    if (!usage) {
      unreadable = usage.error();
      return false;
    }
    if (is_open) {
      report.add({std::move(*usage)}, until);
    } else {
      batch.push_back(std::move(*usage));
      if (batch.size() == records_at_once) report.add(std::exchange(batch, {}), now);
    }
    return !report.is_full();
  });
  if (!done) return tl::unexpected(done.error());
  if (!unreadable.message.empty()) return tl::unexpected(unreadable);
  report.add(batch, now);
  if (report.is_full())
    return failure(
        FailureKind::resource_exhausted,
        "the invoice has more than {} lines or groups; choose a shorter period, or select an account",
        max_bill_lines);
  return report.finish();
}

namespace {

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string csv_row(std::initializer_list<std::string> fields) {
  std::string out;
  for (const std::string& field : fields) out += csv_field(field) + ",";
  out.back() = '\r';
  return out + "\n";
}

// Returns "env=prod;team=a".
std::string labels_field(const UsageLabels& labels) {
  std::string out;
  for (const auto& [key, value] : labels) out += fmt::format("{}{}={}", out.empty() ? "" : ";", key, value);
  return out;
}

}  // namespace

std::string csv_of(const std::vector<api::BillLine>& lines) {
  std::string out =
      "line,account,namespace,kind,name,pod,queue,device,model,from,to,open,seconds,memory_bytes,"
      "usable_bytes,share_bp,ratio,ratio_by,units,gpu_hours,price,amount,used_gpu_hours,labels\r\n";
  for (const api::BillLine& l : lines) {
    out += csv_row({l.id,
                    l.account,
                    l.namespace_,
                    l.kind,
                    l.name,
                    l.pod,
                    l.queue,
                    l.device,
                    l.model,
                    l.from,
                    l.to,
                    l.open ? "true" : "false",
                    l.seconds,
                    fmt::format("{}", l.memory_bytes),
                    fmt::format("{}", l.usable_bytes),
                    fmt::format("{}", l.share_bp),
                    l.ratio,
                    l.ratio_by,
                    l.units,
                    l.gpu_hours,
                    l.price,
                    l.amount,
                    l.used_gpu_hours,
                    labels_field(l.labels)});
  }
  return out;
}

std::string csv_of_sums(const api::Bill& bill) {
  std::string out =
      csv_row({bill.by, "lines", "gpu_hours", "used_gpu_hours", "amount", "currency", "unpriced_seconds"});
  for (const api::BillSum& sum : bill.items)
    out += csv_row({sum.key, fmt::format("{}", sum.lines), sum.gpu_hours, sum.used_gpu_hours, sum.amount,
                    bill.currency, sum.unpriced_seconds});
  return out;
}

}  // namespace carve::controller
