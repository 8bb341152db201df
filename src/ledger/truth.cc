#include "ledger/truth.h"

#include <algorithm>
#include <map>

namespace carve::ledger {
namespace {

struct Row {
  Difference difference;
  Direction direction;
  std::string_view repair;
};
constexpr Row table[] = {
    {Difference::device_unknown, Direction::to_truth, "it is entered, with nothing held of it"},
    {Difference::device_resized, Direction::to_truth, "its free memory takes the difference"},
    {Difference::device_too_small, Direction::nobody,
     "nothing is changed: is it the same device? Stop slices, or begin with another --state"},
    {Difference::device_gone, Direction::nobody, "what is held of it stays held until its holders end"},
    {Difference::use_lost, Direction::to_truth, "it is entered again, as its note tells it"},
    {Difference::use_unreadable, Direction::to_book, "its pages are removed"},
    {Difference::use_over, Direction::to_truth, "it is ended in the ledger"},
    {Difference::pages_differ, Direction::to_book, "they are written anew"},
    {Difference::pages_stale, Direction::to_book, "they are removed"},
    {Difference::device_differs, Direction::to_truth,
     "it is entered so; a reserve takes of what is free, now and as slices leave"},
};

class List {
 public:
  explicit List(const Ledger& ledger) : after(ledger) {}

  void add(Difference d, std::string what, std::string name, std::string book, std::string truth,
           std::optional<Change> change = std::nullopt) {
    const auto row = std::ranges::find(table, d, &Row::difference);
    all.push_back({d, std::move(what), std::move(name), std::move(book), std::move(truth), row->direction,
                   std::string(row->repair), std::move(change)});
    if (all.back().change) (void)after.apply(*all.back().change);
  }

  std::vector<Disagreement> all;
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
    const std::string what = fmt::format("device {} ({})", d.index, text(d.uuid));
    const auto known = list.after.balances().find(d.uuid);
    Device as = d;
    if (known == list.after.balances().end()) {
      as.reserved = {};
      list.add(Difference::device_unknown, what, "", "it is not there",
               fmt::format("the driver shows it, with {}", size(d.native)), DeviceSeen{as});
      continue;
    }
    const Device& book = known->second.device;
    if (book.native == d.native) continue;
    as.reserved = std::min(book.reserved, d.native);
    const auto change = list.after.see(as);
    list.add(change ? Difference::device_resized : Difference::device_too_small, what, "",
             fmt::format("it has {}", size(book.native)),
             change ? fmt::format("the driver shows {}", size(d.native)) : change.error().sentence,
             change ? std::optional(*change) : std::nullopt);
  }
  for (const auto& [uuid, balance] : list.after.balances()) {
    if (std::ranges::find(seen.devices, uuid, &Device::uuid) != seen.devices.end()) continue;
    list.add(Difference::device_gone, fmt::format("device {} ({})", balance.device.index, text(uuid)), "",
             fmt::format("it is there, and {} slices hold of it", balance.held.size()),
             "the driver does not show it");
  }
}

void take_back(List& list, const Observed& seen) {
  for (const Pages& p : seen.pages) {
    if (!p.use || list.after.find(p.name) != nullptr) continue;
    Ledger tried = list.after;
    const auto fits = p.use->what.name == p.name
                          ? tried.apply(Granted{*p.use})
                          : failure(FailureKind::conflict, "it is of a slice '{}'", p.use->what.name);
    if (fits)
      list.add(Difference::use_lost, "slice " + p.name, p.name, "nothing: it was lost",
               "its note tells of " + told(terms_of(p.use->what)), Granted{*p.use});
    else
      list.add(Difference::use_unreadable, "slice " + p.name, p.name, "nothing: it was lost",
               "its note cannot be true: " + fits.error().sentence);
  }
}

void end_what_is_over(List& list, const Observed& seen, const Stamp& now) {
  std::vector<Use> living;
  for (const auto& [id, use] : list.after.living()) living.push_back(use);
  for (const Use& use : living) {
    if (seen.inhabited->contains(use.id)) continue;
    const std::string why = use.from.boot_id == seen.boot_id
                                ? "its last process ended while the agent was away"
                                : "the machine was started anew";
    list.add(Difference::use_over, "slice " + use.what.name, use.what.name, "it lives", why,
             Ended{use.id, now, why});
  }
}

void compare_pages(List& list, const Observed& seen) {
  for (const Pages& p : seen.pages) {
    const Use* use = list.after.find(p.name);
    if (use == nullptr) {
      const bool told_already = std::ranges::any_of(list.all, [&](const Disagreement& d) {
        return d.difference == Difference::use_unreadable && d.name == p.name;
      });
      if (seen.inhabited && !told_already)
        list.add(Difference::pages_stale, "slice " + p.name, p.name, "there is no living slice of that name",
                 "pages lie there");
    } else if (p.use && (p.use->id != use->id || p.use->what != use->what)) {
      list.add(Difference::pages_differ, "slice " + p.name, p.name, told(terms_of(use->what)),
               p.use->id != use->id ? std::string("its pages are those of an earlier slice")
                                    : "its note tells of " + told(terms_of(p.use->what)));
    }
  }
}

void compare_terms_of_devices(List& list, const Observed& seen) {
  for (const Device& d : seen.devices) {
    const auto known = list.after.balances().find(d.uuid);
    if (known == list.after.balances().end() || same(known->second.device, d)) continue;
    const auto change = list.after.see(d);
    if (!change) continue;  // Too small: said already.
    list.add(Difference::device_differs, fmt::format("device {} ({})", d.index, text(d.uuid)), "",
             told(known->second.device), "it is " + told(d), *change);
  }
}

}  // namespace

std::vector<Disagreement> disagreements(const Ledger& ledger, const Observed& seen, const Stamp& now) {
  List list(ledger);
  compare_devices(list, seen);
  if (seen.book_lost) take_back(list, seen);
  if (seen.inhabited) end_what_is_over(list, seen, now);
  compare_pages(list, seen);
  // What is to be reserved waits until everybody who lives has his place.
  if (seen.inhabited) compare_terms_of_devices(list, seen);
  return std::move(list.all);
}

std::string sentence(const Disagreement& d) {
  return fmt::format("{}: the ledger says {}, and {}: {}", d.what, d.book, d.truth, d.repair);
}

}  // namespace carve::ledger
