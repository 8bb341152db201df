#include "ledger/reconcile.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "core/invariant.h"

namespace carve::ledger {
namespace {

struct Row {
  DriftKind kind;
  Resolution resolution;
  std::string_view repair;
};
constexpr Row table[] = {
    {DriftKind::device_unknown, Resolution::update_ledger, "added to the ledger, without slices"},
    {DriftKind::device_resized, Resolution::update_ledger,
     "updated in the ledger; its free memory changes by the difference"},
    {DriftKind::device_too_small, Resolution::report_only,
     "not changed; check that it is the same device, then stop slices or start carved with another --state"},
    {DriftKind::device_gone, Resolution::report_only, "kept in the ledger until its slices end"},
    {DriftKind::end_lost, Resolution::update_ledger, "ended in the ledger"},
    {DriftKind::terms_lost, Resolution::update_ledger, "changed in the ledger to match its state file"},
    {DriftKind::record_lost, Resolution::update_ledger, "restored from its state file"},
    {DriftKind::record_unreadable, Resolution::update_machine, "shared memory removed"},
    {DriftKind::slice_over, Resolution::update_ledger, "ended in the ledger"},
    {DriftKind::shared_memory_differs, Resolution::update_machine, "shared memory rewritten from the ledger"},
    {DriftKind::shared_memory_stale, Resolution::update_machine, "shared memory removed"},
    {DriftKind::device_differs, Resolution::update_ledger,
     "updated in the ledger; a larger reserve takes free memory, now and as slices end"},
};

class List {
 public:
  explicit List(const Ledger& ledger) : after(ledger) {}

  void add(DriftKind d, std::string subject, std::string name, std::string recorded, std::string observed,
           std::optional<Change> change = std::nullopt) {
    const auto row = std::ranges::find(table, d, &Row::kind);
    invariant(row != std::end(table), "each kind of drift has a row");
    invariant((row->resolution == Resolution::update_ledger) == change.has_value());
    all.push_back({d, std::move(subject), std::move(name), std::move(recorded), std::move(observed),
                   row->resolution, std::string(row->repair), std::move(change)});
    if (!all.back().change) return;
    const auto applied = after.apply(*all.back().change);
    invariant(applied.has_value(), "the changes of the list can be applied one after the other");
  }

  std::vector<Drift> all;
  // The ledger after all changes of the list.
  Ledger after;
};

std::string size(Bytes b) { return std::string(text(b)); }

std::string told(const Terms& t) {
  return fmt::format("{} and {} of each device, {}", size(t.memory), std::string(text(t.share)),
                     text(t.policy));
}

std::string told(const Device& d) {
  return fmt::format("index {}, {}, {} reserved", d.index, d.name, size(d.reserved));
}

bool same(const Device& a, const Device& b) {
  return a.index == b.index && a.name == b.name && a.native == b.native && a.reserved == b.reserved;
}

// Devices come first, with the reserve from the ledger, because the bytes held by slices must fit before a
// larger reserve takes memory.
void compare_devices(List& list, const Observed& seen) {
  for (const Device& d : seen.devices) {
    const std::string subject = fmt::format("device {} ({})", d.index, text(d.uuid));
    const auto known = list.after.balances().find(d.uuid);
    Device as = d;
    if (known == list.after.balances().end()) {
      as.reserved = {};
      list.add(DriftKind::device_unknown, subject, "", "no such device",
               fmt::format("the driver reports it with {}", size(d.native)), DeviceSeen{as});
      continue;
    }
    const Device& recorded = known->second.device;
    if (recorded.native == d.native) continue;
    as.reserved = std::min(recorded.reserved, d.native);
    const auto change = list.after.see(as);
    list.add(change ? DriftKind::device_resized : DriftKind::device_too_small, subject, "",
             fmt::format("{}", size(recorded.native)),
             change ? fmt::format("the driver reports {}", size(d.native)) : change.error().message,
             change ? std::optional(*change) : std::nullopt);
  }
  for (const auto& [uuid, balance] : list.after.balances()) {
    if (std::ranges::find(seen.devices, uuid, &Device::uuid) != seen.devices.end()) continue;
    list.add(DriftKind::device_gone, fmt::format("device {} ({})", balance.device.index, text(uuid)), "",
             fmt::format("{} slices on it", balance.held.size()), "the driver does not report it");
  }
}

// Returns the time at which the agent last saw the slice alive. If the newest changes were lost, the end of a
// slice is unknown, so its record ends at this time, and no time is billed after its possible end.
Stamp last_seen_alive(const Ledger& ledger, const UsageRecord& record) {
  const std::optional<Stamp>& alive = ledger.last_alive();
  return alive && alive->utc_ns > record.from.utc_ns ? *alive : record.from;
}

void add_lost_ends(List& list, const Observed& seen) {
  for (const uint64_t id : seen.ended_before) {
    const auto found = list.after.living().find(id);
    if (found == list.after.living().end()) continue;
    const UsageRecord record = found->second;
    const std::string why = "it ended before the ledger lost its newest changes";
    list.add(DriftKind::end_lost, "slice " + record.slice.name, record.slice.name, "live", why,
             Ended{id, last_seen_alive(list.after, record), why});
  }
}

// Returns the changes that turn the ledger's record into the state file's.
std::vector<Altered> lost_terms(const UsageRecord& known, const UsageRecord& newer) {
  std::vector<Altered> out;
  for (size_t i = 0; i < newer.periods.size(); ++i) {
    const Period& period = newer.periods[i];
    if (std::ranges::find(known.periods, period.to, &Period::to) != known.periods.end()) continue;
    const bool is_last = i + 1 == newer.periods.size();
    out.push_back({known.id, period.to, is_last ? terms_of(newer.slice) : newer.periods[i + 1].terms});
  }
  return out;
}

// A slice may have grown into capacity that another slice released, so changes that do not fit yet are
// retried after the others.
void add_lost_terms(List& list, const Observed& seen) {
  invariant(seen.is_behind);
  std::vector<Altered> waiting;
  for (const StateFileSeen& p : seen.state_files) {
    const UsageRecord* known = list.after.find(p.name);
    if (known == nullptr || !p.record || p.record->id != known->id) continue;
    std::ranges::copy(lost_terms(*known, *p.record), std::back_inserter(waiting));
  }
  for (size_t before = waiting.size() + 1; waiting.size() < before;) {
    before = waiting.size();
    std::set<uint64_t> kept;  // Slices of which a change did not fit; keeps the order within a slice.
    std::erase_if(waiting, [&](const Altered& change) {
      Ledger tried = list.after;
      if (kept.contains(change.id) || !tried.apply(change)) return kept.insert(change.id), false;
      const Slice& slice = list.after.living().at(change.id).slice;
      list.add(DriftKind::terms_lost, "slice " + slice.name, slice.name, told(terms_of(slice)),
               "its state file has " + told(change.terms), change);
      return true;
    });
  }
}

void add_lost_records(List& list, const Observed& seen) {
  for (const StateFileSeen& p : seen.state_files) {
    if (!p.record || p.has_ended || list.after.find(p.name) != nullptr) continue;
    Ledger tried = list.after;
    const auto fits =
        p.record->slice.name == p.name
            ? tried.apply(Granted{*p.record})
            : failure(FailureKind::failed_precondition, "it belongs to slice '{}'", p.record->slice.name);
    if (fits)
      list.add(DriftKind::record_lost, "slice " + p.name, p.name, "nothing, because the record was lost",
               "its state file has " + told(terms_of(p.record->slice)), Granted{*p.record});
    else
      list.add(DriftKind::record_unreadable, "slice " + p.name, p.name,
               "nothing, because the record was lost",
               "its state file cannot be used: " + fits.error().message);
  }
}

void end_what_is_over(List& list, const Observed& seen, const Stamp& now) {
  invariant(seen.has_processes.has_value(), "no slice ends before the processes were scanned");
  std::vector<UsageRecord> living;
  for (const auto& [id, record] : list.after.living()) living.push_back(record);
  for (const UsageRecord& record : living) {
    if (seen.has_processes->contains(record.id)) continue;
    const std::string why = record.from.boot_id == seen.boot_id
                                ? "its last process ended while the agent was not running"
                                : "the node was rebooted";
    // After a machine crash, the record ends when the agent last saw the slice alive, so the outage is not
    // billed.
    const Stamp when = record.from.boot_id == seen.boot_id ? now : last_seen_alive(list.after, record);
    list.add(DriftKind::slice_over, "slice " + record.slice.name, record.slice.name, "live", why,
             Ended{record.id, when, why});
  }
}

void compare_pages(List& list, const Observed& seen) {
  for (const StateFileSeen& p : seen.state_files) {
    const UsageRecord* record = list.after.find(p.name);
    if (record == nullptr) {
      const bool told_already = std::ranges::any_of(list.all, [&](const Drift& d) {
        return d.kind == DriftKind::record_unreadable && d.name == p.name;
      });
      if (seen.has_processes && !told_already)
        list.add(DriftKind::shared_memory_stale, "slice " + p.name, p.name, "no live slice of this name",
                 "its shared memory exists");
    } else if (p.record && (p.record->id != record->id || p.record->slice != record->slice)) {
      list.add(DriftKind::shared_memory_differs, "slice " + p.name, p.name, told(terms_of(record->slice)),
               p.record->id != record->id ? std::string("its shared memory belongs to an earlier slice")
                                          : "its state file has " + told(terms_of(p.record->slice)));
    }
  }
}

void compare_terms_of_devices(List& list, const Observed& seen) {
  for (const Device& d : seen.devices) {
    const auto known = list.after.balances().find(d.uuid);
    if (known == list.after.balances().end() || same(known->second.device, d)) continue;
    const auto change = list.after.see(d);
    if (!change) continue;  // The device is too small, which was already reported.
    list.add(DriftKind::device_differs, fmt::format("device {} ({})", d.index, text(d.uuid)), "",
             told(known->second.device), "the driver reports " + told(d), *change);
  }
}

}  // namespace

std::vector<Drift> find_drift(const Ledger& ledger, const Observed& seen, const Stamp& now) {
  List list(ledger);
  compare_devices(list, seen);
  add_lost_ends(list, seen);
  if (seen.is_behind) add_lost_terms(list, seen);
  add_lost_records(list, seen);
  if (seen.has_processes) end_what_is_over(list, seen, now);
  compare_pages(list, seen);
  // A new reserve is only applied once all live slices are recorded.
  if (seen.has_processes) compare_terms_of_devices(list, seen);
  invariant(list.after.balanced());
  return std::move(list.all);
}

std::string message(const Drift& d) {
  return fmt::format("{0}: {3} (recorded: {1}; observed: {2})", d.subject, d.recorded, d.observed, d.repair);
}

}  // namespace carve::ledger
