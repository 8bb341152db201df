#include "node/limits/limit_rule.h"

#include <algorithm>

#include "base/bytes.h"

namespace carve::node {
namespace {

// One amount of a slice, with its limit. All values are sums over the slice's devices.
struct Amount {
  const char* name;  // "memory", or "slice" for a number of slices.
  bool is_count;
  std::optional<uint64_t> limit;
  uint64_t others;  // Held by the other slices.
  uint64_t wanted;
  uint64_t before;  // Held by the slice before the change; 0 before its grant.
  uint64_t alone;   // Needed by the slice without any other slice.
  uint64_t parts;   // The number of devices among which an amount of one slice is divided; 0 if it is not.
  std::string (*text)(uint64_t);
};

std::string bytes_text(uint64_t bytes) { return text(Bytes{bytes}).c_str(); }
std::string share_text(uint64_t points) { return text(Share{static_cast<uint32_t>(points)}).c_str(); }
std::string count_text(uint64_t count) { return std::to_string(count); }

// Whole devices are counted as their whole compute.
uint64_t share_of(const Slice& slice, const SlicePart& part) {
  return slice.exclusive ? whole_device.basis_points : part.share.basis_points;
}

bool is_limited(const Slice& slice) { return !slice.holder; }

// Returns "16 GiB of memory" or "1 slice".
std::string named(const Amount& a, uint64_t amount) {
  if (a.is_count) return fmt::format("{} {}{}", amount, a.name, amount == 1 ? "" : "s");
  return fmt::format("{} of {}", a.text(amount), a.name);
}

constexpr const char* raise_it = "an operator can raise it with carve limit set";

// Returns what the user can do: request less, stop a slice, or both.
std::string way_out(const Amount& a, uint64_t left) {
  std::string less;
  if (a.parts != 0 && left / a.parts != 0)
    less = fmt::format("request at most {}{}", a.text(left / a.parts),
                       a.parts == 1 ? "" : fmt::format(" on each of {} devices", a.parts));
  if (less.empty() && (a.others == 0 || a.alone > *a.limit)) return raise_it;
  if (a.others == 0) return less;
  return less.empty() ? "stop a slice" : less + ", or stop a slice";
}

Outcome<void> check(const std::string& holder, const Amount& a) {
  if (!a.limit || a.wanted <= a.before || a.others + a.wanted <= *a.limit) return {};
  const uint64_t left = *a.limit - std::min(*a.limit, a.others);
  if (*a.limit == 0)
    return failure(FailureKind::failed_precondition, "{}: the limit is {}; {}", holder, named(a, 0),
                   raise_it);
  if (a.alone > *a.limit)
    return failure(FailureKind::failed_precondition,
                   "{}: {} requested for one slice, but the limit of all slices together is {}; {}", holder,
                   named(a, a.alone), a.text(*a.limit), way_out(a, left));
  return failure(FailureKind::insufficient_capacity, "{} holds {} of the limit of {}, and {} {} left; {}",
                 holder, a.text(a.others), named(a, *a.limit), a.text(left), left == 1 ? "is" : "are",
                 way_out(a, left));
}

Outcome<void> check(const api::Limit& limit, const std::string& holder, const Held& others,
                    const Slice& wanted, const Slice* before) {
  Held now, was;
  now.add(wanted);
  if (before != nullptr) was.add(*before);
  std::set<Uuid> devices = others.devices;
  devices.merge(std::set<Uuid>(now.devices));
  const uint64_t added = devices.size() - others.devices.size();
  const auto count = [](const std::optional<uint32_t>& number) {
    return number ? std::optional<uint64_t>(*number) : std::nullopt;
  };
  const auto bytes = limit.memory ? std::optional(limit.memory->count) : std::nullopt;
  const auto points = limit.share ? std::optional<uint64_t>(limit.share->basis_points) : std::nullopt;
  const uint64_t parts = wanted.parts.size();
  const Amount amounts[] = {
      {"slice", true, count(limit.slices), others.slices, now.slices, was.slices, now.slices, 0, count_text},
      {"memory", false, bytes, others.memory.count, now.memory.count, was.memory.count, now.memory.count,
       parts, bytes_text},
      {"compute", false, points, others.share.basis_points, now.share.basis_points, was.share.basis_points,
       now.share.basis_points, parts, share_text},
      // A change of a slice does not change its devices.
      {"device", true, before == nullptr ? count(limit.devices) : std::nullopt, others.devices.size(), added,
       0, now.devices.size(), 0, count_text},
  };
  for (const Amount& amount : amounts)
    if (const auto good = check(holder, amount); !good) return good;
  return {};
}

Outcome<void> check_all(std::span<const api::Limit> limits, const ledger::Ledger& ledger, const Slice& wanted,
                        const ledger::UsageRecord* before) {
  if (!is_limited(wanted)) return {};
  const uint64_t id = before != nullptr ? before->id : 0;
  const Slice* const was = before != nullptr ? &before->slice : nullptr;
  if (const api::Limit* limit = limit_of_user(limits, wanted.owner)) {
    const std::string holder = limit->uid ? "user " + limit->user : fmt::format("uid {}", wanted.owner);
    if (const auto good = check(*limit, holder, held_by_user(ledger, wanted.owner, id), wanted, was); !good)
      return good;
  }
  const api::Limit* const limit = limit_of_account(limits, wanted.account);
  if (limit == nullptr) return {};
  return check(*limit, "account " + wanted.account, held_by_account(ledger, wanted.account, id), wanted, was);
}

template <class Matches>
Held held(const ledger::Ledger& ledger, uint64_t except, Matches matches) {
  Held out;
  for (const auto& [id, record] : ledger.living())
    if (id != except && is_limited(record.slice) && matches(record.slice)) out.add(record.slice);
  return out;
}

const api::Limit* find(std::span<const api::Limit> limits, auto matches) {
  const auto found = std::ranges::find_if(limits, matches);
  return found != limits.end() ? &*found : nullptr;
}

}  // namespace

void Held::add(const Slice& slice) {
  ++slices;
  for (const SlicePart& part : slice.parts) {
    memory.count += part.memory.count;
    share.basis_points += static_cast<uint32_t>(share_of(slice, part));
    devices.insert(part.device);
  }
}

api::HeldAmounts Held::amounts() const {
  return {
      .memory = memory, .share = share, .slices = slices, .devices = static_cast<uint32_t>(devices.size())};
}

Held held_by_user(const ledger::Ledger& ledger, uint32_t uid, uint64_t except) {
  return held(ledger, except, [uid](const Slice& slice) { return slice.owner == uid; });
}

Held held_by_account(const ledger::Ledger& ledger, const std::string& account, uint64_t except) {
  return held(ledger, except, [&](const Slice& slice) { return slice.account == account; });
}

const api::Limit* limit_of_user(std::span<const api::Limit> limits, uint32_t uid) {
  if (const api::Limit* own = find(limits, [uid](const api::Limit& limit) { return limit.uid == uid; }))
    return own;
  if (uid == 0) return nullptr;
  return find(limits, [](const api::Limit& limit) { return limit.user == api::every_user; });
}

const api::Limit* limit_of_account(std::span<const api::Limit> limits, const std::string& account) {
  if (account.empty()) return nullptr;
  return find(limits, [&](const api::Limit& limit) { return limit.account == account; });
}

Outcome<void> check_grant(std::span<const api::Limit> limits, const ledger::Ledger& ledger,
                          const Slice& slice) {
  return check_all(limits, ledger, slice, nullptr);
}

Outcome<void> check_change(std::span<const api::Limit> limits, const ledger::Ledger& ledger, uint64_t id,
                           const ledger::Terms& terms) {
  const ledger::UsageRecord& record = ledger.living().at(id);
  Slice changed = record.slice;
  ledger::set_terms(changed, terms);
  return check_all(limits, ledger, changed, &record);
}

}  // namespace carve::node
