#include "kubernetes/coordinator/snapshot/request_on.h"

namespace carve::kubernetes::coordinator {
namespace {

constexpr std::string_view ack = "ack";

// Returns the isolation that the slice has on a node of this mode, or no value if the mode does not provide
// it.
std::optional<Isolation> granted(const Amounts& asked, NodeMode mode) {
  const bool has_share = asked.has_share();
  switch (mode) {
    case NodeMode::memory_and_compute:
      if (asked.isolation == Isolation::none) return std::nullopt;
      return asked.isolation.value_or(has_share ? Isolation::memory_and_compute : Isolation::memory);
    case NodeMode::memory:
      if (has_share || asked.isolation.value_or(Isolation::memory) != Isolation::memory) return std::nullopt;
      return Isolation::memory;
    case NodeMode::none:
      if (has_share || asked.isolation.value_or(Isolation::none) != Isolation::none) return std::nullopt;
      return Isolation::none;
    case NodeMode::exclusive: return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

Result<Request, std::string> request_on(const kubernetes::RequestedSlice& asked, std::string_view dialect,
                                        const NodeKind& kind) {
  auto read = request_of(asked.amounts, MemoryUnit::gib);
  if (!read) return tl::unexpected(read.error().message);
  Request& out = *read;
  out.policy = asked.amounts.policy.value_or(kind.policy);
  out.strategy.reset();  // The coordinator decides it, not the node.
  if (asked.unit && asked.units)
    out.memory_units = {
        *asked.units, *asked.unit == size_of(MemoryUnit::gib).count ? MemoryUnit::gib : MemoryUnit::mib_128};
  if (out.policy != kind.policy)
    return tl::unexpected(fmt::format("it needs policy {}, and the node's effective policy is {}",
                                      text(*out.policy), text(kind.policy)));
  if (out.exclusive) {  // Whole devices have no limits, so these amounts have no effect.
    out.isolation.reset();
    out.share = {};
    out.spill = {};
    out.memory = {};
  } else {
    const auto isolation = granted(asked.amounts, kind.mode);
    const bool is_compute_promised = kind.mode == NodeMode::memory_and_compute && kind.is_mode_named;
    if (!isolation || (dialect == ack && is_compute_promised && !asked.amounts.has_share()))
      return tl::unexpected(fmt::format("the node's mode is {}", text(kind.mode)));
    out.isolation = isolation;
  }
  auto valid = validated(std::move(out));
  if (!valid) return tl::unexpected(valid.error().message);
  return std::move(*valid);
}

}  // namespace carve::kubernetes::coordinator
