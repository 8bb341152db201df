#include "ledger/ledger.h"

#include <algorithm>

namespace carve::ledger {
namespace {

using K = FailureKind;

Bytes held_in_all(const Balance& b) {
  Bytes sum;
  for (const auto& [id, part] : b.held) sum.count += part.memory.count;
  return sum;
}

Share shares_in_all(const Balance& b) {
  Share sum;
  for (const auto& [id, part] : b.held) sum.basis_points += part.share.basis_points;
  return sum;
}

void settle_shares(Balance& b) {
  b.free_share = {whole_device.basis_points - std::min(shares_in_all(b), whole_device).basis_points};
}

// Moves bytes from one account to another; the caller has checked that they are there.
void move(Bytes& from, Bytes& to, Bytes amount) {
  from.count -= amount.count;
  to.count += amount.count;
}

// The reserve takes what it still wants out of what is free, or gives back what it has too much.
void settle_reserve(Balance& b) {
  if (b.reserved < b.device.reserved)
    move(b.free, b.reserved, std::min(b.free, minus(b.device.reserved, b.reserved)));
  else
    move(b.reserved, b.free, minus(b.reserved, b.device.reserved));
}

}  // namespace

int64_t duration_ns(const Stamp& from, const Stamp& to) {
  const int64_t by_clock =
      from.boot_id == to.boot_id ? to.monotonic_ns - from.monotonic_ns : to.utc_ns - from.utc_ns;
  return std::max<int64_t>(by_clock, 0);
}

Terms terms_of(const Slice& what) {
  Terms t;
  if (!what.parts.empty()) {
    t.memory = what.parts.front().memory;
    t.share = what.parts.front().share;
  }
  t.policy = what.policy;
  t.latency = what.latency;
  t.isolation = what.isolation;
  return t;
}

void set_terms(Slice& what, const Terms& t) {
  for (SlicePart& part : what.parts) {
    part.memory = t.memory;
    part.share = t.share;
  }
  what.policy = t.policy;
  what.latency = t.latency;
  what.isolation = t.isolation;
}

Outcome<Change> Ledger::see(const Device& device) const {
  if (device.reserved > device.native)
    return failure(K::out_of_order, "device {}: {} cannot be reserved of {}", device.index,
                   text(device.reserved).c_str(), text(device.native).c_str());
  const auto known = balances_.find(device.uuid);
  if (known != balances_.end() && held_in_all(known->second) > device.native)
    return failure(K::out_of_order, "device {} ({}): it has {}, and slices hold {} of it", device.index,
                   text(device.uuid), text(device.native).c_str(), text(held_in_all(known->second)).c_str());
  return DeviceSeen{device};
}

const Use* Ledger::already_granted(uint32_t owner, std::string_view request_id) const {
  if (request_id.empty()) return nullptr;
  for (const auto& [id, use] : living_)
    if (use.what.owner == owner && use.what.request_id == request_id) return &use;
  return nullptr;
}

const Use* Ledger::find(std::string_view name) const {
  for (const auto& [id, use] : living_)
    if (use.what.name == name) return &use;
  return nullptr;
}

// Everything that must hold before a slice can stand in the book.
Outcome<void> Ledger::check(const Use& use, Share most) const {
  const Slice& what = use.what;
  if (what.name.empty() || what.parts.empty())
    return failure(K::bad_request, "a slice has a name and at least one part");
  if (find(what.name) != nullptr)
    return failure(K::conflict, "the name '{}' is taken by a living slice; choose another, or stop that one",
                   what.name);
  if (already_granted(what.owner, what.request_id) != nullptr)
    return failure(K::conflict, "request '{}' was granted meanwhile; ask again", what.request_id);
  std::set<Uuid> seen;
  for (const SlicePart& part : what.parts) {
    const auto found = balances_.find(part.device);
    if (found == balances_.end())
      return failure(K::not_found, "there is no device {} in the ledger", text(part.device));
    const Balance& b = found->second;
    if (!seen.insert(part.device).second)
      return failure(K::bad_request, "device {} is named twice in one slice", b.device.index);
    if (part.memory > b.free)
      return failure(K::no_room, "device {}: {} needed, {} free", b.device.index, text(part.memory).c_str(),
                     text(b.free).c_str());
    if (part.share.basis_points + uint64_t{shares_in_all(b).basis_points} > most.basis_points)
      return failure(K::no_room, "device {}: {} of its compute needed, {} free", b.device.index,
                     text(part.share).c_str(), text(b.free_share).c_str());
  }
  return {};
}

Outcome<Change> Ledger::grant(const Slice& what, const Stamp& now, Share most) const {
  if (const Use* use = already_granted(what.owner, what.request_id)) return Granted{*use};
  for (const Use& use : ended_)
    if (!what.request_id.empty() && use.what.owner == what.owner && use.what.request_id == what.request_id)
      return failure(K::conflict, "this request was granted as '{}', which has ended: {}", use.what.name,
                     use.why);
  Use use{last_id_ + 1, what, now, std::nullopt, {}, {}};
  if (const auto good = check(use, most); !good) return tl::unexpected(good.error());
  return Granted{std::move(use), most};
}

Outcome<Change> Ledger::alter(uint64_t id, const Terms& terms, const Stamp& now, Share most) const {
  const auto found = living_.find(id);
  if (found == living_.end()) return failure(K::not_found, "slice {} has ended already, or never was", id);
  const Slice& what = found->second.what;
  if (what.exclusive)
    return failure(K::bad_request, "slice {} has whole devices to itself: there is nothing to change",
                   what.name);
  for (const SlicePart& part : what.parts) {
    const Balance& b = balances_.at(part.device);
    if (terms.memory > part.memory && minus(terms.memory, part.memory) > b.free)
      return failure(K::no_room, "device {}: {} more needed, {} free", b.device.index,
                     text(minus(terms.memory, part.memory)).c_str(), text(b.free).c_str());
    const uint64_t others = shares_in_all(b).basis_points - part.share.basis_points;
    if (terms.share > part.share && others + terms.share.basis_points > most.basis_points)
      return failure(K::no_room, "device {}: {} of its compute needed, {} free beside the others",
                     b.device.index, text(terms.share).c_str(),
                     text(Share{static_cast<uint32_t>(10000 - std::min<uint64_t>(others, 10000))}).c_str());
  }
  return Altered{id, now, terms, most};
}

Outcome<Change> Ledger::end(uint64_t id, const Stamp& now, std::string why) const {
  if (!living_.contains(id)) return failure(K::not_found, "slice {} has ended already, or never was", id);
  return Ended{id, now, std::move(why)};
}

Outcome<void> Ledger::apply(const Change& change) {
  if (const auto* seen = std::get_if<DeviceSeen>(&change)) {
    if (const auto good = see(seen->device); !good) return tl::unexpected(good.error());
    auto [place, fresh] = balances_.try_emplace(seen->device.uuid);
    Balance& b = place->second;
    // A device of another size: its free memory takes the difference, then the reserve settles.
    const Bytes held = held_in_all(b);
    b.device = seen->device;
    b.reserved = std::min(b.reserved, minus(b.device.native, held));
    b.free = minus(minus(b.device.native, held), b.reserved);
    settle_reserve(b);
    return {};
  }
  if (const auto* granted = std::get_if<Granted>(&change)) {
    const Use& use = granted->use;
    if (const auto known = living_.find(use.id); known != living_.end()) {
      if (known->second == use) return {};  // The same grant, posted twice.
      return failure(K::conflict,
                     "the ledger has moved on: slice {} was granted as '{}' meanwhile; ask again", use.id,
                     known->second.what.name);
    }
    if (std::ranges::find(ended_, use.id, &Use::id) != ended_.end())
      return failure(K::conflict, "the ledger has moved on: slice {} has come and gone; ask again", use.id);
    last_id_ = std::max(last_id_, use.id);
    if (use.to) {  // Only out of a store: history.
      ended_.push_back(use);
      if (ended_.size() > most_ended) ended_.erase(ended_.begin());
      return {};
    }
    if (const auto good = check(use, granted->most); !good) return good;
    for (const SlicePart& part : use.what.parts) {
      Balance& b = balances_.at(part.device);
      SlicePart& held = b.held[use.id];
      held = {part.device, {}, part.share, {}};
      move(b.free, held.memory, part.memory);
      settle_shares(b);
    }
    living_.emplace(use.id, use);
    return {};
  }
  if (const auto* altered = std::get_if<Altered>(&change)) {
    if (const auto good = alter(altered->id, altered->terms, altered->when, altered->most); !good)
      return tl::unexpected(good.error());
    Use& use = living_.at(altered->id);
    use.before.push_back({terms_of(use.what), altered->when});
    if (use.before.size() > most_periods) use.before.erase(use.before.begin());
    set_terms(use.what, altered->terms);
    for (const SlicePart& part : use.what.parts) {
      Balance& b = balances_.at(part.device);
      SlicePart& held = b.held.at(use.id);
      if (part.memory > held.memory)
        move(b.free, held.memory, minus(part.memory, held.memory));
      else
        move(held.memory, b.free, minus(held.memory, part.memory));
      held.share = part.share;
      settle_shares(b);
      settle_reserve(b);
    }
    return {};
  }
  const auto& ended = std::get<Ended>(change);
  const auto found = living_.find(ended.id);
  if (found == living_.end())
    return failure(K::not_found, "slice {} has ended already, or never was", ended.id);
  for (const SlicePart& part : found->second.what.parts) {
    Balance& b = balances_.at(part.device);
    move(b.held.at(ended.id).memory, b.free, part.memory);
    b.held.erase(ended.id);
    settle_shares(b);
    settle_reserve(b);
  }
  Use use = std::move(found->second);
  living_.erase(found);
  use.to = ended.when;
  use.why = ended.why;
  ended_.push_back(std::move(use));
  if (ended_.size() > most_ended) ended_.erase(ended_.begin());
  return {};
}

bool Ledger::balanced() const {
  return std::ranges::all_of(balances_, [](const auto& entry) {
    const Balance& b = entry.second;
    const uint64_t shares = uint64_t{b.free_share.basis_points} + shares_in_all(b).basis_points;
    return b.reserved.count + b.free.count + held_in_all(b).count == b.device.native.count &&
           shares == std::max(shares_in_all(b), whole_device).basis_points;
  });
}

}  // namespace carve::ledger
