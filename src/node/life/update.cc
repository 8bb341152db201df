#include "node/life/update.h"

#include <algorithm>

#include "node/life/lifecycle.h"
#include "node/limits/limit_rule.h"
#include "node/slice/protection.h"
#include "os/clock.h"
#include "wire/shm/shared_blocks.h"

namespace carve::node {
namespace {

uint64_t used_of(const LiveSlice& slice, size_t part) {
  return slice.charged(static_cast<unsigned>(part)).count;
}

// Returns the command with the program's name instead of its path, cut to 40 characters.
std::string shortened(std::string command) {
  const size_t name = command.rfind('/', command.find(' '));
  if (name != std::string::npos) command.erase(0, name + 1);
  if (command.size() > 40) command.replace(37, std::string::npos, "...");
  return command;
}

// Returns a text such as "process 12 (train) 3 GiB, process 13 (train) 1 GiB, 90 MiB of growth".
std::string holders_of(const NodeState& node, const LiveSlice& slice, unsigned part) {
  std::vector<std::pair<uint64_t, std::string>> held;
  for (const auto& [process, attached] : slice.attached) {
    uint64_t bytes = 0;
    for (unsigned lane = 0; lane < shm::lanes; ++lane)
      bytes += shm::in_use_by(slice.report.page->charges, {part, attached.slot, lane});
    if (bytes != 0)
      held.emplace_back(
          bytes, fmt::format("process {} ({}) {}", process.pid,
                             shortened(node.inspector->command_of(process)), text(Bytes{bytes}).c_str()));
  }
  std::ranges::sort(held, std::greater{});
  std::vector<std::string> said;
  for (size_t i = 0; i < held.size() && i < 8; ++i) said.push_back(held[i].second);
  if (held.size() > said.size()) said.push_back(fmt::format("{} more", held.size() - said.size()));
  if (const uint64_t shared = shm::shared_bytes(slice.report.page->charges, part); shared != 0)
    said.push_back(fmt::format("{} of exported memory", text(Bytes{shared}).c_str()));
  if (const uint64_t grown = shm::holding(slice.report.page->charges, {part, shm::Tag::agent, 0}); grown != 0)
    said.push_back(fmt::format("{} of growth", text(Bytes{grown}).c_str()));
  return fmt::format("{}", fmt::join(said, ", "));
}

std::string spoken(const ledger::Terms& was, const ledger::Terms& is) {
  std::vector<std::string> said;
  if (was.memory != is.memory)
    said.push_back(fmt::format("memory {} instead of {}", text(is.memory).c_str(), text(was.memory).c_str()));
  if (was.share != is.share)
    said.push_back(
        was.share.basis_points == 0
            ? fmt::format("compute {}", text(is.share).c_str())
            : fmt::format("compute {} instead of {}", text(is.share).c_str(), text(was.share).c_str()));
  if (was.policy != is.policy)
    said.push_back(fmt::format("policy {} instead of {}", text(is.policy), text(was.policy)));
  if (was.latency != is.latency)
    said.push_back(fmt::format("class {} instead of {}", text(is.latency), text(was.latency)));
  if (was.isolation != is.isolation)
    said.push_back(fmt::format("isolation {} instead of {}", text(is.isolation), text(was.isolation)));
  return fmt::format("{}", fmt::join(said, ", "));
}

// Returns the index of a part in which more than this memory is in use; no value if there is none.
std::optional<unsigned> part_above(const LiveSlice& slice, Bytes memory) {
  if (!slice.limited() || !slice.report.page) return std::nullopt;
  for (unsigned i = 0; i < slice.granted().parts.size(); ++i)
    if (used_of(slice, i) > memory.count) return i;
  return std::nullopt;
}

// Returns the failure that the part uses more than this memory, with the names of the processes that use it.
tl::unexpected<Failure> used_above(const NodeState& node, const LiveSlice& slice, unsigned part,
                                   Bytes memory) {
  const uint64_t used = used_of(slice, part);
  return failure(FailureKind::failed_precondition,
                 "slice {} uses {} of device {}, more than {}: {}; its quota must currently be at least {}",
                 slice.name(), text(Bytes{used}).c_str(),
                 node.device(slice.granted().parts[part].device)->device.index, text(memory).c_str(),
                 holders_of(node, slice, part),
                 text(Bytes{(used + (1 << 20) - 1) & ~uint64_t{(1 << 20) - 1}}).c_str());
}

// Writes the new quota to the control page. Fails if more bytes are in use.
Outcome<void> shrink(const NodeState& node, LiveSlice& slice, Bytes memory) {
  if (!slice.limited() || !slice.report.page) return {};
  const auto quota_is = [&](Bytes quota) {
    for (size_t i = 0; i < slice.granted().parts.size(); ++i)
      std::atomic_ref(slice.control->devices[i].quota).store(quota.count);
  };
  auto full = part_above(slice, memory);
  if (!full) {
    quota_is(memory);
    full = part_above(slice, memory);
    if (!full) return {};
    quota_is(slice.granted().parts[*full].memory);
  }
  return used_above(node, slice, *full, memory);
}

}  // namespace

Outcome<void> may_have(const NodeState& node, const LiveSlice& slice, const ledger::Terms& terms,
                       const TermsUpdate& asked) {
  if (asked.share && (asked.share->basis_points == 0 || *asked.share > whole_device))
    return failure(FailureKind::invalid_argument, "a compute share must be above 0% and at most 100%");
  if ((asked.memory || asked.share) && !slice.granted().has_equal_parts())
    return failure(FailureKind::failed_precondition,
                   "the parts of slice {} differ, so one amount for all of them cannot be set; stop the "
                   "slice and request one with other parts",
                   slice.name());
  if (asked.memory && *asked.memory < min_memory)
    return failure(FailureKind::invalid_argument, "{} of memory is too little; request at least 1 MiB",
                   text(*asked.memory).c_str());
  for (const SlicePart& part : slice.granted().parts) {
    const NodeDevice* d = node.device(part.device);
    if (d == nullptr) continue;
    const Policy effective = node.compute.policies.of(part.device).effective;
    if (asked.policy && *asked.policy != effective && !node.settings.policy_per_slice)
      return failure(FailureKind::failed_precondition,
                     "device {} follows {}, and all slices of a device follow one policy; change the node's "
                     "policy (carve node set --policy {}), or start carved with --policy-per-slice",
                     d->device.index, text(effective), text(*asked.policy));
    if (asked.memory && slice.limited() && node.settings.contexts_in_slice && terms.memory < d->context)
      return failure(
          FailureKind::invalid_argument,
          "device {}: {} is less than the {} that one context takes on it; request at least {}, or start "
          "carved with --context-charge reserve",
          d->device.index, text(terms.memory).c_str(), text(d->context).c_str(), text(d->context).c_str());
  }
  return {};
}

Outcome<void> update_terms(NodeState& node, LiveSlice& slice, const TermsUpdate& asked,
                           const std::string& by) {
  if (slice.stopping || slice.ended)
    return failure(FailureKind::failed_precondition, "slice {} is ending", slice.name());
  const ledger::Terms was = ledger::terms_of(slice.granted());
  ledger::Terms terms = was;
  if (asked.memory) terms.memory = *asked.memory;
  if (asked.share) terms.share = *asked.share;
  if (asked.policy) terms.policy = *asked.policy;
  if (asked.latency) terms.latency = *asked.latency;
  // The first share is enforced from now on, as if the slice had been requested with one.
  if (asked.share && was.share.basis_points == 0 && was.isolation == Isolation::memory)
    terms.isolation = default_isolation(*asked.share);
  if (const auto good = may_have(node, slice, terms, asked); !good) return good;
  if (terms == was) return {};
  if (const auto good = check_change(node.limits.all(), node.ledger(), slice.id(), terms); !good) return good;
  if (!asked.is_dry_run && !asked.is_of_operator && !slice.change_budget.take(os::monotonic_ns()))
    return failure(
        FailureKind::resource_exhausted,
        "slice {} was changed {} times in a row and may now be changed only once a second; try again",
        slice.name(), EventBudget::default_burst);

  const auto change = node.ledger().alter(slice.id(), terms, stamp_now(), node.most_shares());
  if (!change) return tl::unexpected(change.error());
  if (asked.is_dry_run) {
    const auto full = part_above(slice, terms.memory);
    return full ? Outcome<void>(used_above(node, slice, *full, terms.memory)) : Outcome<void>();
  }
  if (terms.memory < was.memory)
    if (const auto done = shrink(node, slice, terms.memory); !done) return done;
  const auto kept = node.books.post(*change);
  if (kept) slice.record = node.ledger().living().at(slice.id());
  protect(node, slice);
  fill_control(node, slice);
  if (!kept) return kept;
  node.pages.write_state(slice);
  node.event(slice.name(), fmt::format("updated by {}: {}", by, spoken(was, terms)));
  arbitrate(node, slice.granted());
  return {};
}

}  // namespace carve::node
