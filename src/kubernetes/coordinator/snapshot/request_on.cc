#include "kubernetes/coordinator/snapshot/request_on.h"

namespace carve::kubernetes::coordinator {
namespace {

constexpr std::string_view ack = "ack";

// Returns the amounts without those that have no effect, because a whole device has no limits.
Amounts effective(Amounts amounts) {
  if (!amounts.exclusive) return amounts;
  amounts.memory_bytes.reset();
  amounts.memory_bp.reset();
  amounts.memory_units.reset();
  amounts.total_memory_bytes.reset();
  amounts.share_bp.reset();
  amounts.spill_bytes = 0;
  amounts.isolation.reset();
  return amounts;
}

}  // namespace

Result<Request, fleet::Refusal> request_on(const kubernetes::RequestedSlice& asked, std::string_view dialect,
                                           const fleet::NodeKind& kind) {
  auto out = fleet::request_on(effective(asked.amounts), kind);
  if (!out) return out;
  const bool is_compute_promised = kind.mode == NodeMode::memory_and_compute && kind.is_mode_named;
  if (dialect == ack && is_compute_promised && !out->exclusive && !asked.amounts.has_share())
    return tl::unexpected(
        fleet::Refusal{fleet::other_mode, fmt::format("the node's mode is {}", text(kind.mode))});
  out->strategy.reset();  // Decided by the coordinator, not by the node.
  if (asked.unit && asked.units)
    out->memory_units = {
        *asked.units, *asked.unit == size_of(MemoryUnit::gib).count ? MemoryUnit::gib : MemoryUnit::mib_128};
  return out;
}

}  // namespace carve::kubernetes::coordinator
