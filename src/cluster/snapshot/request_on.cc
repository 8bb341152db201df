#include "cluster/snapshot/request_on.h"

namespace carve::cluster {
namespace {

using kube::NodeMode;

constexpr std::string_view ack = "ack";

// Returns the isolation that the slice has on a node of this mode; no value: the mode does not give it.
std::optional<Isolation> granted(const kube::SliceAmounts& asked, NodeMode mode) {
  const bool has_share = asked.share_bp.value_or(0) != 0;
  switch (mode) {
    case NodeMode::memory_and_compute:
      if (asked.isolation == Isolation::none) return std::nullopt;
      return asked.isolation.value_or(default_isolation({asked.share_bp.value_or(0)}));
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

Result<Request, std::string> request_on(const kube::SliceAmounts& asked, std::string_view dialect,
                                        const NodeKind& kind) {
  const bool is_exclusive = asked.exclusive.value_or(false);
  Request out;
  out.devices = asked.devices;
  out.exclusive = is_exclusive;
  out.policy = asked.policy.value_or(kind.policy);
  out.latency = asked.latency_class.value_or(LatencyClass::batch);
  if (asked.models) out.models = *asked.models;
  if (asked.unit && asked.units)
    out.memory_units = {
        *asked.units, *asked.unit == size_of(MemoryUnit::gib).count ? MemoryUnit::gib : MemoryUnit::mib_128};
  if (out.policy != kind.policy)
    return tl::unexpected(fmt::format("it needs policy {}, and the node's effective policy is {}",
                                      text(*out.policy), text(kind.policy)));
  if (!is_exclusive) {
    const auto isolation = granted(asked, kind.mode);
    const bool is_compute_promised = kind.mode == NodeMode::memory_and_compute && kind.is_mode_named;
    if (!isolation || (dialect == ack && is_compute_promised && !asked.share_bp))
      return tl::unexpected(fmt::format("the node's mode is {}", text(kind.mode)));
    out.isolation = isolation;
    out.share = {asked.share_bp.value_or(0)};
    out.spill = {asked.spill.value_or(0)};
    if (asked.memory) out.memory = PerDevice{{*asked.memory}};
    if (asked.memory_bp) out.memory = OfUsable{{*asked.memory_bp}};
  }
  auto valid = validated(std::move(out));
  if (!valid) return tl::unexpected(valid.error().sentence);
  return std::move(*valid);
}

}  // namespace carve::cluster
