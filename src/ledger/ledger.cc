#include "ledger/ledger.h"

#include <algorithm>

#include "core/invariant.h"

namespace carve::ledger {
namespace {

Bytes held_in_all(const Balance& b) {
  Bytes sum;
  for (const auto& [id, part] : b.held) sum.count += part.memory.count;
  return sum;
}

// Moves bytes from one account to another. The caller must have checked that `from` has enough.
void move(Bytes& from, Bytes& to, Bytes amount) {
  invariant(amount <= from, "an account is never negative");
  from.count -= amount.count;
  to.count += amount.count;
  invariant(to >= amount);  // The sum did not overflow.
}

// Moves free bytes to the reserve until it is complete, or its surplus back to the free bytes.
void settle_reserve(Balance& b) {
  if (b.reserved < b.device.reserved)
    move(b.free, b.reserved, std::min(b.free, minus(b.device.reserved, b.reserved)));
  else
    move(b.reserved, b.free, minus(b.reserved, b.device.reserved));
  invariant(b.reserved == b.device.reserved || b.free.count == 0);
  invariant(b.reserved <= b.device.reserved);
}

// Returns whether every byte of the device is in exactly one account, and the same for the promised shares.
bool is_balanced(const Balance& b, Share promised) {
  return b.reserved.count + b.free.count + held_in_all(b).count == b.device.native.count &&
         b.free_share.basis_points + uint64_t{promised.basis_points} ==
             std::max(promised, whole_device).basis_points;
}

void add_used(UsageRecord& record, const UsedAmounts& used) {
  record.busy_ns = std::max(record.busy_ns, used.busy_ns);
  record.peak_bytes = std::max(record.peak_bytes, used.peak_bytes);
}

}  // namespace

int64_t duration_ns(const Stamp& from, const Stamp& to) {
  const int64_t by_clock =
      from.boot_id == to.boot_id ? to.monotonic_ns - from.monotonic_ns : to.utc_ns - from.utc_ns;
  return std::max<int64_t>(by_clock, 0);
}

Terms terms_of(const Slice& slice) {
  Terms t;
  if (!slice.parts.empty()) {
    t.memory = slice.parts.front().memory;
    t.share = slice.parts.front().share;
  }
  t.policy = slice.policy;
  t.latency = slice.latency;
  t.isolation = slice.isolation;
  return t;
}

void set_terms(Slice& slice, const Terms& t) {
  const Terms was = terms_of(slice);
  for (SlicePart& part : slice.parts) {
    if (t.memory != was.memory) part.memory = t.memory;
    if (t.share != was.share) part.share = t.share;
  }
  slice.policy = t.policy;
  slice.latency = t.latency;
  slice.isolation = t.isolation;
  invariant(slice.parts.empty() || terms_of(slice) == t);
}

Share Ledger::promised_on(const Balance& b) const {
  Share sum;
  for (const auto& [id, part] : b.held)
    sum.basis_points += promised_share(living_.at(id).slice.policy, part.share).basis_points;
  invariant(sum <= unlimited_shares);  // Prevents the sum of 32-bit shares from overflowing.
  return sum;
}

void Ledger::settle_shares(Balance& b) const {
  b.free_share = {whole_device.basis_points - std::min(promised_on(b), whole_device).basis_points};
}

Outcome<Change> Ledger::see(const Device& device) const {
  if (device.reserved > device.native)
    return failure(FailureKind::unavailable, "device {}: a reserve of {} exceeds its memory of {}",
                   device.index, text(device.reserved).c_str(), text(device.native).c_str());
  const auto known = balances_.find(device.uuid);
  invariant(known == balances_.end() || known->second.device.uuid == device.uuid);
  if (known != balances_.end() && held_in_all(known->second) > device.native)
    return failure(FailureKind::unavailable, "device {} ({}) has {}, but its slices hold {}", device.index,
                   text(device.uuid), text(device.native).c_str(), text(held_in_all(known->second)).c_str());
  return DeviceSeen{device};
}

const UsageRecord* Ledger::find_by_request_id(uint32_t owner, std::string_view request_id) const {
  if (request_id.empty()) return nullptr;
  for (const auto& [id, record] : living_)
    if (record.slice.owner == owner && record.slice.request_id == request_id) return &record;
  return nullptr;
}

const UsageRecord* Ledger::find_by_holder(const Holder& holder) const {
  for (const auto& [id, record] : living_)
    if (is_same(record.slice.holder, holder)) return &record;
  return nullptr;
}

const UsageRecord* Ledger::find(std::string_view name) const {
  for (const auto& [id, record] : living_)
    if (record.slice.name == name) return &record;
  return nullptr;
}

// Checks all conditions for adding a record.
Outcome<void> Ledger::check(const UsageRecord& record, Share most) const {
  const Slice& slice = record.slice;
  if (slice.name.empty() || slice.parts.empty())
    return failure(FailureKind::invalid_argument, "a slice needs a name and at least one part");
  if (find(slice.name) != nullptr)
    return failure(FailureKind::already_exists,
                   "the name '{}' is taken by a live slice; choose another name, or stop that slice",
                   slice.name);
  if (find_by_request_id(slice.owner, slice.request_id) != nullptr)
    return failure(FailureKind::already_exists,
                   "request '{}' was granted in the meantime; repeat the request", slice.request_id);
  if (const UsageRecord* known = find_by_holder(slice.holder))
    return failure(FailureKind::already_exists, "{} already has the slice '{}'; end that slice first",
                   text(slice.holder), known->slice.name);
  std::set<Uuid> seen;
  for (const SlicePart& part : slice.parts) {
    const auto found = balances_.find(part.device);
    if (found == balances_.end())
      return failure(FailureKind::not_found, "device {} is not in the ledger", text(part.device));
    const Balance& b = found->second;
    if (!seen.insert(part.device).second)
      return failure(FailureKind::invalid_argument, "device {} occurs twice in one slice", b.device.index);
    if (part.memory > b.free)
      return failure(FailureKind::insufficient_capacity, "device {}: {} needed, {} free", b.device.index,
                     text(part.memory).c_str(), text(b.free).c_str());
    const Share promise = promised_share(slice.policy, part.share);
    // A slice without a promise fits also if more than `most` was promised before the limit was lowered.
    if (promise.basis_points > 0 &&
        promise.basis_points + uint64_t{promised_on(b).basis_points} > most.basis_points)
      return failure(FailureKind::insufficient_capacity, "device {}: {} of its compute needed, {} free",
                     b.device.index, text(promise).c_str(), text(b.free_share).c_str());
  }
  return {};
}

Outcome<Change> Ledger::grant(const Slice& slice, const Stamp& now, Share most) const {
  if (const UsageRecord* record = find_by_request_id(slice.owner, slice.request_id)) return Granted{*record};
  for (const UsageRecord& record : ended_)
    if (!slice.request_id.empty() && record.slice.owner == slice.owner &&
        record.slice.request_id == slice.request_id)
      return failure(FailureKind::already_exists, "this request was granted as '{}', which has ended: {}",
                     record.slice.name, record.end_reason);
  UsageRecord record{next_id(), slice, now, std::nullopt, {}, {}};
  invariant(!living_.contains(record.id), "an id is never reused");
  if (const auto good = check(record, most); !good) return tl::unexpected(good.error());
  return Granted{std::move(record), most};
}

Outcome<Change> Ledger::alter(uint64_t id, const Terms& terms, const Stamp& now, Share most) const {
  const auto found = living_.find(id);
  if (found == living_.end())
    return failure(FailureKind::not_found, "slice {} has ended or does not exist", id);
  const Slice& slice = found->second.slice;
  if (slice.exclusive)
    return failure(FailureKind::invalid_argument,
                   "slice {} is exclusive; its memory and share cannot be changed", slice.name);
  Slice altered = slice;
  set_terms(altered, terms);
  for (size_t i = 0; i < slice.parts.size(); ++i) {
    const SlicePart& part = slice.parts[i];
    const SlicePart& wish = altered.parts[i];
    const Balance& b = balances_.at(part.device);
    invariant(b.held.contains(id), "a living slice is in the accounts of its devices");
    const Share promise = promised_share(slice.policy, part.share);
    const Share wanted = promised_share(terms.policy, wish.share);
    const Share all = promised_on(b);
    invariant(promise <= all);
    if (wish.memory > part.memory && minus(wish.memory, part.memory) > b.free)
      return failure(FailureKind::insufficient_capacity, "device {}: {} more needed, {} free", b.device.index,
                     text(minus(wish.memory, part.memory)).c_str(), text(b.free).c_str());
    const uint64_t others = all.basis_points - promise.basis_points;
    if (wanted > promise && others + wanted.basis_points > most.basis_points)
      return failure(FailureKind::insufficient_capacity, "device {}: {} of its compute needed, {} free",
                     b.device.index, text(wanted).c_str(),
                     text(Share{static_cast<uint32_t>(10000 - std::min<uint64_t>(others, 10000))}).c_str());
  }
  return Altered{id, now, terms, most};
}

Outcome<Change> Ledger::end(uint64_t id, const Stamp& now, std::string why, const UsedAmounts& used) const {
  if (!living_.contains(id))
    return failure(FailureKind::not_found, "slice {} has ended or does not exist", id);
  return Ended{id, now, std::move(why), used};
}

Change Ledger::alive(const Stamp& now, const std::map<uint64_t, UsedAmounts>& used) const {
  Alive out{now, {}};
  for (const auto& [id, amounts] : used)
    if (const auto known = living_.find(id);
        known != living_.end() &&
        (known->second.busy_ns < amounts.busy_ns || known->second.peak_bytes < amounts.peak_bytes))
      out.used.emplace(id, amounts);
  return out;
}

Outcome<void> Ledger::carry_out(const DeviceSeen& seen) {
  if (const auto good = see(seen.device); !good) return tl::unexpected(good.error());
  auto [place, fresh] = balances_.try_emplace(seen.device.uuid);
  Balance& b = place->second;
  // If the device's size has changed, its free memory changes by the difference. Then the reserve is settled.
  const Bytes held = held_in_all(b);
  invariant(!fresh || b.held.empty());
  b.device = seen.device;
  invariant(held <= b.device.native);  // see() has rejected a device that has become too small.
  b.reserved = std::min(b.reserved, minus(b.device.native, held));
  b.free = minus(minus(b.device.native, held), b.reserved);
  settle_reserve(b);
  return {};
}

Outcome<void> Ledger::carry_out(const Granted& granted) {
  const UsageRecord& record = granted.record;
  if (const auto known = living_.find(record.id); known != living_.end()) {
    if (known->second == record) return {};  // The same grant, posted twice.
    return failure(FailureKind::failed_precondition,
                   "the ledger has changed: slice {} was granted as '{}'; repeat the request", record.id,
                   known->second.slice.name);
  }
  if (std::ranges::find(ended_, record.id, &UsageRecord::id) != ended_.end())
    return failure(FailureKind::failed_precondition,
                   "the ledger has changed: slice {} was granted and has ended; repeat the request",
                   record.id);
  last_id_ = std::max(last_id_, record.id);
  if (record.to) {  // History, which only comes from the store.
    add_ended(record);
    return {};
  }
  if (const auto good = check(record, granted.most); !good) return good;
  living_.emplace(record.id, record);
  for (const SlicePart& part : record.slice.parts) {
    Balance& b = balances_.at(part.device);
    const auto [entry, fresh] = b.held.try_emplace(record.id, SlicePart{part.device, {}, part.share, {}});
    invariant(fresh, "a slice has at most one part on a device");
    move(b.free, entry->second.memory, part.memory);
    settle_shares(b);
  }
  invariant(record.id < next_id());
  return {};
}

Outcome<void> Ledger::carry_out(const Altered& altered) {
  if (const auto good = alter(altered.id, altered.terms, altered.when, altered.most); !good)
    return tl::unexpected(good.error());
  UsageRecord& record = living_.at(altered.id);
  invariant(!record.to, "a living record has no end");
  record.periods.push_back({terms_of(record.slice), altered.when});
  if (record.periods.size() > max_periods) record.periods.erase(record.periods.begin());
  invariant(record.periods.size() <= max_periods);
  set_terms(record.slice, altered.terms);
  for (const SlicePart& part : record.slice.parts) {
    Balance& b = balances_.at(part.device);
    SlicePart& held = b.held.at(record.id);
    if (part.memory > held.memory)
      move(b.free, held.memory, minus(part.memory, held.memory));
    else
      move(held.memory, b.free, minus(held.memory, part.memory));
    invariant(held.memory == part.memory);
    held.share = part.share;
    settle_shares(b);
    settle_reserve(b);
  }
  return {};
}

Outcome<void> Ledger::carry_out(const Alive& alive) {
  last_alive_ = alive.when;
  for (const auto& [id, used] : alive.used)
    if (const auto known = living_.find(id); known != living_.end()) add_used(known->second, used);
  return {};
}

Outcome<void> Ledger::carry_out(const Ended& ended) {
  const auto found = living_.find(ended.id);
  if (found == living_.end())
    return failure(FailureKind::not_found, "slice {} has ended or does not exist", ended.id);
  for (const SlicePart& part : found->second.slice.parts) {
    Balance& b = balances_.at(part.device);
    const auto held = b.held.find(ended.id);
    invariant(held != b.held.end());
    invariant(held->second.memory == part.memory && held->second.share == part.share);
    move(held->second.memory, b.free, part.memory);
    b.held.erase(held);
    settle_shares(b);
    settle_reserve(b);
  }
  UsageRecord record = std::move(found->second);
  living_.erase(found);
  record.to = ended.when;
  record.end_reason = ended.why;
  add_used(record, ended.used);
  add_ended(std::move(record));
  return {};
}

void Ledger::add_ended(UsageRecord record) {
  invariant(record.to.has_value());
  invariant(!living_.contains(record.id));
  ended_.push_back(std::move(record));
  if (ended_.size() > max_ended_records) ended_.erase(ended_.begin());
  invariant(ended_.size() <= max_ended_records);
}

Outcome<void> Ledger::apply(const Change& change) {
  const uint64_t next_before = next_id();
  const auto done = std::visit([this](const auto& one) { return carry_out(one); }, change);
  invariant(next_id() >= next_before);
  invariant(balanced(change));
  return done;
}

// Returns whether the accounts of all devices that the change touched are balanced.
bool Ledger::balanced(const Change& change) const {
  const auto is_balanced_at = [this](const Uuid& uuid) {
    const auto entry = balances_.find(uuid);
    // A rejected change, or a record that has ended, may name a device that is not in the ledger.
    return entry == balances_.end() || is_balanced(entry->second, promised_on(entry->second));
  };
  if (const auto* seen = std::get_if<DeviceSeen>(&change)) return is_balanced_at(seen->device.uuid);
  const Slice* slice = nullptr;
  if (const auto* granted = std::get_if<Granted>(&change)) slice = &granted->record.slice;
  if (const auto* altered = std::get_if<Altered>(&change))
    if (const auto found = living_.find(altered->id); found != living_.end()) slice = &found->second.slice;
  if (const auto* ended = std::get_if<Ended>(&change))
    if (!ended_.empty() && ended_.back().id == ended->id) slice = &ended_.back().slice;
  return slice == nullptr ||
         std::ranges::all_of(slice->parts, is_balanced_at, [](const SlicePart& part) { return part.device; });
}

bool Ledger::balanced() const {
  return std::ranges::all_of(
      balances_, [this](const auto& entry) { return is_balanced(entry.second, promised_on(entry.second)); });
}

}  // namespace carve::ledger
