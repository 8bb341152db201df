#include "kubernetes/node/rules/container_reports.h"

#include <algorithm>

namespace carve::kubernetes::node {
namespace {

bool has_label(const RuntimeContainer& container, const char* label, const std::string& value) {
  const auto found = container.labels.find(label);
  return found != container.labels.end() && found->second == value;
}

// Returns whether this container is the holder of a live slice.
bool holds_a_slice(const std::vector<api::Slice>& slices, const RuntimeContainer& container) {
  return std::ranges::any_of(slices, [&](const api::Slice& slice) {
    return slice.holder && slice.holder->pod && has_label(container, pod_uid_label, slice.holder->pod->uid) &&
           has_label(container, container_name_label, slice.holder->pod->container);
  });
}

}  // namespace

std::vector<ContainerReport> find_unreported(const std::vector<api::Slice>& slices,
                                             const std::vector<RuntimeContainer>& containers,
                                             const std::set<std::string>& reported) {
  std::vector<ContainerReport> out;
  for (const api::Slice& slice : slices) {
    if (slice.slot.empty() || !slice.holder || !slice.holder->pod) continue;
    const PodContainer& holder = *slice.holder->pod;
    for (const RuntimeContainer& container : containers) {
      if (!has_label(container, pod_uid_label, holder.uid)) continue;
      const bool is_holder = has_label(container, container_name_label, holder.container);
      if (!is_holder && holds_a_slice(slices, container)) continue;
      const ContainerReport report{.slice = slice.name,
                                   .slot = slice.slot,
                                   .holder = holder,
                                   .id = container.id,
                                   .is_shared = !is_holder};
      if (!reported.contains(report.key())) out.push_back(report);
    }
  }
  return out;
}

}  // namespace carve::kubernetes::node
