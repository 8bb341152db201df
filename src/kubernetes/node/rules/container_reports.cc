#include "kubernetes/node/rules/container_reports.h"

#include <algorithm>

#include "core/attach_point.h"
#include "kubernetes/node/rules/resource_claim.h"

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

std::string claim_key(const RuntimeContainer& container) { return "claims " + container.id; }

std::vector<RuntimeContainer> find_unexamined(const std::vector<api::Slice>& slices,
                                              const std::vector<RuntimeContainer>& containers,
                                              const std::set<std::string>& reported) {
  const auto is_of_claim = [](const api::Slice& slice) { return slice.holder && slice.holder->claim; };
  std::vector<RuntimeContainer> out;
  if (std::ranges::none_of(slices, is_of_claim)) return out;
  for (const RuntimeContainer& container : containers)
    if (!reported.contains(claim_key(container))) out.push_back(container);
  return out;
}

const api::Slice* slice_at(const std::vector<api::Slice>& slices, const std::string& attach_point) {
  for (const api::Slice& slice : slices)
    if (slice.holder && slice.holder->claim &&
        AttachPoint::of_claim(*slice.holder->claim).name == attach_point)
      return &slice;
  return nullptr;
}

PodContainer pod_container(const RuntimeContainer& container) {
  const auto label = [&](const char* key) {
    const auto found = container.labels.find(key);
    return found == container.labels.end() ? std::string() : found->second;
  };
  return {.namespace_ = label(pod_namespace_label),
          .name = label(pod_name_label),
          .uid = label(pod_uid_label),
          .container = label(container_name_label)};
}

std::string claim_refusal(const api::Slice& slice, const PodContainer& container,
                          const std::vector<ContainerClaims>& all) {
  if (std::ranges::find(slice.pods, container.uid, &ClaimPod::uid) == slice.pods.end())
    return fmt::format("pod {}/{} may not use {}", container.namespace_, container.name, text(*slice.holder));
  const ContainerName name{container.namespace_, container.name, container.container};
  const auto claims = std::ranges::find(all, name, &ContainerClaims::container);
  if (claims == all.end() || claims->claims.size() < 2) return "";
  return fmt::format("container {} has {} claims of {}; use one claim with {} requests", container.container,
                     claims->claims.size(), dra_driver, claims->claims.size());
}

}  // namespace carve::kubernetes::node
