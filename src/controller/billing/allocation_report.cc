#include "controller/billing/allocation_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "controller/billing/bill_report.h"
#include "controller/billing/usage_groups.h"
#include "core/utc.h"

namespace carve::controller {
namespace {

constexpr bill::Ns ns_per_hour = 3600 * bill::second_ns;
constexpr bill::Ns ns_per_day = 24 * ns_per_hour;

struct AllocationTotals {
  bill::Total total;
  __int128 used = 0, idle = 0;  // Millionths of GPU-hours.
  uint64_t begun = 0, ended = 0, held = 0;
  std::vector<uint32_t> stays;  // Seconds, one for each allocation.
  bill::Ns since = INT64_MAX;

  void add(const AllocationTotals& other) {
    total.gpu_hours += other.total.gpu_hours;
    total.amount += other.total.amount;
    total.unpriced_ns += other.total.unpriced_ns;
    used += other.used;
    idle += other.idle;
    begun += other.begun;
    ended += other.ended;
    held += other.held;
    stays.insert(stays.end(), other.stays.begin(), other.stays.end());
    since = std::min(since, other.since);
  }
};

// Returns the median; the mean of the two middle values if their number is even. Reorders the values.
uint64_t median_of(std::vector<uint32_t>& values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 != 0) return *middle;
  return (uint64_t{*middle} + *std::max_element(values.begin(), middle)) / 2;
}

api::AllocationSum shown_sum(const GroupKey& key, AllocationTotals& sum, std::optional<uint32_t> uid = {}) {
  return {.key = key.name,
          .is_rest = key.is_rest,
          .uid = uid,
          .allocations = sum.stays.size(),
          .begun = sum.begun,
          .ended = sum.ended,
          .held = sum.held,
          .gpu_hours = bill::text(sum.total.gpu_hours),
          .used_gpu_hours = bill::text(sum.used),
          .idle_gpu_hours = bill::text(sum.idle),
          .amount = bill::text(sum.total.amount),
          .unpriced_seconds = bill::text(millionths_of(sum.total.unpriced_ns, bill::second_ns)),
          .median_stay_seconds = median_of(sum.stays),
          .longest_stay_seconds = sum.stays.empty() ? 0 : *std::ranges::max_element(sum.stays),
          .since = sum.since == INT64_MAX ? "" : text_utc(sum.since)};
}

// Returns the part of a device that the line's slice held, in millionths.
__int128 ratio_in_millionths(const bill::Line& line) {
  if (line.ratio_by == bill::RatioBy::whole_device) return bill::millionths_per_one;
  if (line.ratio_by == bill::RatioBy::share)
    return millionths_of(line.share.basis_points, whole_device.basis_points);
  return millionths_of(line.memory.count, line.device.usable.count);
}

// The days of the period, and the granted time in each.
class Days {
 public:
  explicit Days(const bill::Window& window) : window_(window) {
    for (bill::Ns day = window.from - window.from % ns_per_day; day < window.to; day += ns_per_day)
      granted_.push_back(0);
  }

  void add(const bill::Line& line) {
    const __int128 ratio = ratio_in_millionths(line);
    for (bill::Ns at = std::max(line.from, window_.from); at < std::min(line.to, window_.to);) {
      const auto day = static_cast<size_t>(at / ns_per_day - window_.from / ns_per_day);
      const bill::Ns until = std::min({line.to, window_.to, (at / ns_per_day + 1) * ns_per_day});
      granted_[day] += ratio * (until - at);
      at = until;
    }
  }

  std::vector<api::InventoryDay> shown(const std::vector<InventoryChange>& inventory, bill::Ns now) const {
    std::vector<api::InventoryDay> out;
    for (size_t i = 0; i < granted_.size(); ++i) {
      const bill::Ns day = (window_.from / ns_per_day + static_cast<bill::Ns>(i)) * ns_per_day;
      const bill::Window part{.from = std::max(day, window_.from),
                              .to = std::min(day + ns_per_day, window_.to)};
      if (part.from >= now) break;
      out.push_back(
          {.from = text_utc(part.from),
           .to = text_utc(part.to),
           .granted_device_hours = bill::text(granted_[i] / ns_per_hour),
           .usable_device_hours = usable(inventory, {.from = part.from, .to = std::min(part.to, now)})});
    }
    return out;
  }

 private:
  // Returns no value if the number of devices is not known for the whole time.
  static std::optional<std::string> usable(const std::vector<InventoryChange>& inventory,
                                           const bill::Window& part) {
    if (inventory.empty() || inventory.front().from_ns > part.from || part.to <= part.from)
      return std::nullopt;
    __int128 device_ns = 0;
    std::map<std::string_view, const InventoryChange*> last;
    const auto count = [&](const InventoryChange& from, bill::Ns to) {
      const bill::Ns begin = std::max(from.from_ns, part.from), end = std::min(to, part.to);
      if (end > begin) device_ns += __int128{from.devices} * (end - begin);
    };
    for (const InventoryChange& change : inventory) {
      auto& before = last[change.node];
      if (before != nullptr) count(*before, change.from_ns);
      before = &change;
    }
    for (const auto& [node, change] : last) count(*change, part.to);
    return bill::text(millionths_of(device_ns, ns_per_hour));
  }

  const bill::Window window_;
  std::vector<__int128> granted_;  // Millionths of devices, times ns.
};

class AllocationReport {
 public:
  AllocationReport(const bill::Tariffs& tariffs, const BillQuery& query)
      : tariffs_(tariffs),
        query_(query),
        groups_(query),
        days_(query.by_day ? query.window : bill::Window{0, 0}) {}

  bool add(const std::vector<bill::Usage>& records, const ledger::Stamp& until) {
    const bill::Invoice invoice = bill::invoice(records, tariffs_, query_.window, until);
    for (const bill::RefusedUsage& refused : invoice.refused)
      if (refused_.size() < max_refused_records) refused_.push_back(refused.message);
    // The lines of a record are adjacent, and so are those of each device of a record.
    for (auto line = invoice.lines.begin(); line != invoice.lines.end();) {
      const auto end = std::find_if(line, invoice.lines.end(), [&](const bill::Line& other) {
        return other.usage != line->usage ||
               (query_.by == BillBy::device && other.device.uuid != line->device.uuid);
      });
      add_allocation({line, end}, until);
      line = end;
    }
    return !is_full();
  }
  bool is_full() const { return sums_.size() > max_bill_groups; }

  api::Allocations finish(const std::vector<InventoryChange>& inventory, bill::Ns now) {
    api::Allocations out;
    AllocationTotals all;
    for (auto& [key, sum] : sums_) {
      all.add(sum);
      out.items.push_back(shown_sum(key, sum, groups_.uid_of(key)));
    }
    out.total = shown_sum({.is_rest = false, .name = "total"}, all);
    if (!tariffs_.all().empty()) out.currency = tariffs_.all().front().currency;
    out.by = grouping_text(query_);
    out.from = text_utc(query_.window.from);
    out.to = text_utc(query_.window.to);
    if (query_.by_day) out.days = days_.shown(inventory, now);
    out.refused = std::move(refused_);
    return out;
  }

 private:
  void add_allocation(std::span<const bill::Line> lines, const ledger::Stamp& until) {
    const ledger::UsageRecord& record = lines.front().usage->record;
    const bill::Window& window = query_.window;
    const bill::Ns begin = record.from.utc_ns;
    const bill::Ns end = record.to ? utc_end_ns(record) : begin + ledger::duration_ns(record.from, until);
    const bill::Ns record_ns = ledger::duration_ns(record.from, record.to ? *record.to : until);
    AllocationTotals sum;
    for (const bill::Line& line : lines) {
      sum.total.gpu_hours += line.gpu_hours.count;
      sum.total.amount += line.amount.count;
      if (line.unpriced != bill::Unpriced::no) sum.total.unpriced_ns += line.billed;
      sum.used += used_of(line, busy_of(line, record_ns));
      if (query_.by_day) days_.add(line);
    }
    sum.idle = std::max<__int128>(sum.total.gpu_hours - sum.used, 0);
    sum.begun = begin >= window.from && begin < window.to ? 1 : 0;
    sum.ended = record.to && end >= window.from && end < window.to ? 1 : 0;
    sum.held = !record.to || end >= window.to ? 1 : 0;
    if (sum.held != 0) sum.since = begin;
    sum.stays.push_back(
        static_cast<uint32_t>(std::clamp<bill::Ns>((end - begin) / bill::second_ns, 0, UINT32_MAX)));
    sums_[groups_.of(lines.front())].add(sum);
  }

  const bill::Tariffs& tariffs_;
  const BillQuery& query_;
  UsageGroups groups_;
  Days days_;
  std::map<GroupKey, AllocationTotals> sums_;
  std::vector<std::string> refused_;
};

}  // namespace

Outcome<api::Allocations> make_allocations(UsageStore& store, const bill::Tariffs& tariffs,
                                           const BillQuery& query, const ledger::Stamp& now) {
  AllocationReport report(tariffs, query);
  const auto done =
      each_usage(store, query, !query.by_label.empty(), now,
                 [&](const auto& records, const auto& until) { return report.add(records, until); });
  if (!done) return tl::unexpected(done.error());
  if (report.is_full())
    return failure(FailureKind::resource_exhausted,
                   "the period has more than {} groups; choose a shorter period, or select an account",
                   max_bill_groups);
  const Outcome<std::vector<InventoryChange>> inventory =
      query.by_day ? store.inventory() : std::vector<InventoryChange>();
  if (!inventory) return tl::unexpected(inventory.error());
  return report.finish(*inventory, now.utc_ns);
}

}  // namespace carve::controller
