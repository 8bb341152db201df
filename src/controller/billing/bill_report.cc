#include "controller/billing/bill_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "controller/billing/usage_groups.h"
#include "core/fields.h"
#include "os/clock.h"
#include "wire/api/json.h"

namespace carve::controller {
namespace {

using bill::Line;

// A total, and the part of it that was used.
struct Sum {
  bill::Total total;
  __int128 used = 0;  // Millionths of GPU-hours.
  uint64_t lines = 0;
};

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
  const auto& holder = usage.record.slice.holder.pod;
  return {.id = line_id(line),
          .node = node_name(usage.node),
          .account = usage.account,
          .namespace_ = usage.name_space,
          .kind = usage.kind,
          .name = usage.name,
          .pod = holder ? usage.record.slice.name + "/" + holder->container : usage.record.slice.name,
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

api::BillSum shown(const GroupKey& key, const Sum& sum, std::optional<uint32_t> uid = {}) {
  return {.key = key.name,
          .is_rest = key.is_rest,
          .uid = uid,
          .lines = sum.lines,
          .gpu_hours = bill::text(sum.total.gpu_hours),
          .amount = bill::text(sum.total.amount),
          .used_gpu_hours = bill::text(sum.used),
          .unpriced_seconds = bill::text(millionths_of(sum.total.unpriced_ns, bill::second_ns))};
}

class Report {
 public:
  Report(const bill::Tariffs& tariffs, const BillQuery& query)
      : tariffs_(tariffs), query_(query), keys_(query) {}

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
      out_.items.push_back(shown(key, sum, keys_.uid_of(key)));
    }
    out_.total = shown(GroupKey{.is_rest = false, .name = "total"}, all);
    if (!tariffs_.all().empty()) out_.currency = tariffs_.all().front().currency;
    out_.by = grouping_text(query_);
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
    Sum& sum = groups_[keys_.of(line)];
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
  UsageGroups keys_;
  std::map<GroupKey, Sum> groups_;
  std::map<std::string, int64_t>
      savings_;  // Millionths of GPU-hours, keyed by the id and the begin of a line.
  api::Bill out_;
};

}  // namespace

Outcome<api::Bill> make_bill(UsageStore& store, const bill::Tariffs& tariffs, const BillQuery& query,
                             const ledger::Stamp& now) {
  Report report(tariffs, query);
  const bool needs_labels =
      !query.by_label.empty() || query.with_lines || query.only_idle || !query.line.empty();
  const auto done = each_usage(store, query, needs_labels, now, [&](const auto& records, const auto& until) {
    report.add(records, until);
    return !report.is_full();
  });
  if (!done) return tl::unexpected(done.error());
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
      "usable_bytes,share_bp,ratio,ratio_by,units,gpu_hours,price,amount,used_gpu_hours,labels,node\r\n";
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
                    labels_field(l.labels),
                    l.node});
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
