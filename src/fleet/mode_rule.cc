#include "fleet/mode_rule.h"

namespace carve::fleet {
namespace {

// Returns the isolation that the slice has on a node of this mode, or no value if the mode does not provide
// it.
std::optional<Isolation> granted_isolation(const Amounts& amounts, NodeMode mode) {
  const bool has_share = amounts.has_share();
  switch (mode) {
    case NodeMode::memory_and_compute:
      if (amounts.isolation == Isolation::none) return std::nullopt;
      return amounts.isolation.value_or(has_share ? Isolation::memory_and_compute : Isolation::memory);
    case NodeMode::memory:
      if (has_share || amounts.isolation.value_or(Isolation::memory) != Isolation::memory)
        return std::nullopt;
      return Isolation::memory;
    case NodeMode::none:
      if (has_share || amounts.isolation.value_or(Isolation::none) != Isolation::none) return std::nullopt;
      return Isolation::none;
    case NodeMode::exclusive: return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

Result<Request, Refusal> request_on(const Amounts& amounts, const NodeKind& kind) {
  auto read = request_of(amounts, kind.unit);
  if (!read) return tl::unexpected(Refusal{invalid_request, read.error().message});
  auto valid = validated(std::move(*read));
  if (!valid) return tl::unexpected(Refusal{invalid_request, valid.error().message});
  Request& out = *valid;
  if (kind.policy && amounts.policy.value_or(*kind.policy) != *kind.policy)
    return tl::unexpected(
        Refusal{other_policy, fmt::format("it needs policy {}, but the node's effective policy is {}",
                                          text(*amounts.policy), text(*kind.policy))});
  if (kind.policy) out.policy = kind.policy;
  if (!out.exclusive) {
    out.isolation = granted_isolation(amounts, kind.mode);
    if (!out.isolation)
      return tl::unexpected(Refusal{other_mode, fmt::format("the node's mode is {}", text(kind.mode))});
  }
  // Amounts that need a limit are invalid without it: isolation none has no quota to spill from.
  auto granted = validated(std::move(out));
  if (!granted) return tl::unexpected(Refusal{other_mode, granted.error().message});
  return std::move(*granted);
}

place::RequestShape shape_on(const Request& request, const NodeKind& kind, const place::Fleet& fleet) {
  place::RequestShape out = place::shape_of(request, fleet);
  out.kinds = place::NodeKinds{1} << number_of(kind);
  if (request.policy != Policy::native_burst_share || request.exclusive) return out;
  out.share = {};
  for (place::PartShape& part : out.parts) part.share = {};
  out.best_effort = false;
  return out;
}

}  // namespace carve::fleet
