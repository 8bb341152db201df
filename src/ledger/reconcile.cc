#include "ledger/reconcile.h"

#include <algorithm>
#include <map>

namespace carve::ledger {
namespace {

struct Row {
  DriftKind kind;
  Resolution resolution;
  std::string_view repair;
};
constexpr Row table[] = {
    {DriftKind::device_unknown, Resolution::update_ledger, "it is entered, with nothing held of it"},
    {DriftKind::device_resized, Resolution::update_ledger, "its free memory takes the difference"},
    {DriftKind::device_too_small, Resolution::report_only,
     "nothing is changed: is it the same device? Stop slices, or begin with another --state"},
    {DriftKind::device_gone, Resolution::report_only, "what is held of it stays held until its holders end"},
    {DriftKind::record_lost, Resolution::update_ledger, "it is entered again, as its note tells it"},
    {DriftKind::record_unreadable, Resolution::update_machine, "its pages are removed"},
    {DriftKind::slice_over, Resolution::update_ledger, "it is ended in the ledger"},
    {DriftKind::shared_memory_differs, Resolution::update_machine, "they are written anew"},
    {DriftKind::shared_memory_stale, Resolution::update_machine, "they are removed"},
    {DriftKind::device_differs, Resolution::update_ledger,
     "it is entered so; a reserve takes of what is free, now and as slices leave"},
};

class List {
 public:
  explicit List(const Ledger& ledger) : after(ledger) {}

  void add(DriftKind d, std::string subject, std::string name, std::string recorded, std::string observed,
           std::optional<Change> change = std::nullopt) {
    const auto row = std::ranges::find(table, d, &Row::kind);
    all.push_back({d, std::move(subject), std::move(name), std::move(recorded), std::move(observed),
                   row->resolution, std::string(row->repair), std::move(change)});
    if (all.back().change) (void)after.apply(*all.back().change);
  }

  std::vector<Drift> all;
  Ledger after;  // As it will be when all that stands in the list has been posted.
};

std::string size(Bytes b) { return std::string(text(b)); }

std::string told(const Terms& t) {
  return fmt::format("{} and {} of each device, {}", size(t.memory), std::string(text(t.share)),
                     text(t.policy));
}

std::string told(const Device& d) {
  return fmt::format("number {}, {}, {} of it kept back", d.index, d.name, size(d.reserved));
}

bool same(const Device& a, const Device& b) {
  return a.index == b.index && a.name == b.name && a.native == b.native && a.reserved == b.reserved;
}

// Devices come first, with the reserve that the book has: what is held must fit before a reserve takes.
void compare_devices(List& list, const Observed& seen) {
  for (const Device& d : seen.devices) {
    const std::string subject = fmt::format("device {} ({})", d.index, text(d.uuid));
    const auto known = list.after.balances().find(d.uuid);
    Device as = d;
    if (known == list.after.balances().end()) {
      as.reserved = {};
      list.add(DriftKind::device_unknown, subject, "", "it is not there",
               fmt::format("the driver shows it, with {}", size(d.native)), DeviceSeen{as});
      continue;
    }
    const Device& recorded = known->second.device;
    if (recorded.native == d.native) continue;
    as.reserved = std::min(recorded.reserved, d.native);
    const auto change = list.after.see(as);
    list.add(change ? DriftKind::device_resized : DriftKind::device_too_small, subject, "",
             fmt::format("it has {}", size(recorded.native)),
             change ? fmt::format("the driver shows {}", size(d.native)) : change.error().sentence,
             change ? std::optional(*change) : std::nullopt);
  }
  for (const auto& [uuid, balance] : list.after.balances()) {
    if (std::ranges::find(seen.devices, uuid, &Device::uuid) != seen.devices.end()) continue;
    list.add(DriftKind::device_gone, fmt::format("device {} ({})", balance.device.index, text(uuid)), "",
             fmt::format("it is there, and {} slices hold of it", balance.held.size()),
             "the driver does not show it");
  }
}

void add_lost_records(List& list, const Observed& seen) {
  for (const StateFileSeen& p : seen.state_files) {
    if (!p.record || list.after.find(p.name) != nullptr) continue;
    Ledger tried = list.after;
    const auto fits = p.record->slice.name == p.name ? tried.apply(Granted{*p.record})
                                                     : failure(FailureKind::failed_precondition,
                                                               "it is of a slice '{}'", p.record->slice.name);
    if (fits)
      list.add(DriftKind::record_lost, "slice " + p.name, p.name, "nothing: it was lost",
               "its note tells of " + told(terms_of(p.record->slice)), Granted{*p.record});
    else
      list.add(DriftKind::record_unreadable, "slice " + p.name, p.name, "nothing: it was lost",
               "its note cannot be true: " + fits.error().sentence);
  }
}

void end_what_is_over(List& list, const Observed& seen, const Stamp& now) {
  std::vector<UsageRecord> living;
  for (const auto& [id, record] : list.after.living()) living.push_back(record);
  for (const UsageRecord& record : living) {
    if (seen.has_processes->contains(record.id)) continue;
    const std::string why = record.from.boot_id == seen.boot_id
                                ? "its last process ended while the agent was away"
                                : "the machine was started anew";
    list.add(DriftKind::slice_over, "slice " + record.slice.name, record.slice.name, "it lives", why,
             Ended{record.id, now, why});
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
        list.add(DriftKind::shared_memory_stale, "slice " + p.name, p.name,
                 "there is no living slice of that name", "pages lie there");
    } else if (p.record && (p.record->id != record->id || p.record->slice != record->slice)) {
      list.add(DriftKind::shared_memory_differs, "slice " + p.name, p.name, told(terms_of(record->slice)),
               p.record->id != record->id ? std::string("its pages are those of an earlier slice")
                                          : "its note tells of " + told(terms_of(p.record->slice)));
    }
  }
}

void compare_terms_of_devices(List& list, const Observed& seen) {
  for (const Device& d : seen.devices) {
    const auto known = list.after.balances().find(d.uuid);
    if (known == list.after.balances().end() || same(known->second.device, d)) continue;
    const auto change = list.after.see(d);
    if (!change) continue;  // Too small: said already.
    list.add(DriftKind::device_differs, fmt::format("device {} ({})", d.index, text(d.uuid)), "",
             told(known->second.device), "it is " + told(d), *change);
  }
}

}  // namespace

std::vector<Drift> find_drift(const Ledger& ledger, const Observed& seen, const Stamp& now) {
  List list(ledger);
  compare_devices(list, seen);
  if (seen.ledger_lost) add_lost_records(list, seen);
  if (seen.has_processes) end_what_is_over(list, seen, now);
  compare_pages(list, seen);
  // What is to be reserved waits until everybody who lives has his place.
  if (seen.has_processes) compare_terms_of_devices(list, seen);
  return std::move(list.all);
}

std::string sentence(const Drift& d) {
  return fmt::format("{}: the ledger says {}, and {}: {}", d.subject, d.recorded, d.observed, d.repair);
}

}  // namespace carve::ledger
