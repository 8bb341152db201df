#include "kubernetes/node/rules/container_start.h"

#include <algorithm>

#include "core/invariant.h"
#include "core/label.h"
#include "kubernetes/format/pod_request.h"
#include "kubernetes/format/pod_slices.h"

namespace carve::kubernetes::node {
namespace {

using Kind = StartDecision::Kind;

constexpr size_t max_pod_labels = 16;

template <class... A>
StartDecision undecided(Kind kind, fmt::format_string<A...> form, A&&... values) {
  return {.kind = kind, .request = {}, .message = fmt::format(form, std::forward<A>(values)...), .pod = {}};
}

// Returns the candidates whose container may be starting, because the pod exists and has not ended. If at
// least one of them is not being deleted, those being deleted are left out: kubelet keeps their devices until
// they have ended.
std::vector<StartCandidate> startable(std::span<const StartCandidate> candidates) {
  std::vector<StartCandidate> out;
  for (const StartCandidate& candidate : candidates)
    if (candidate.pod && !candidate.pod->is_over) out.push_back(candidate);
  const auto is_deleting = [](const StartCandidate& candidate) { return candidate.pod->meta.is_deleting; };
  if (!std::ranges::all_of(out, is_deleting)) std::erase_if(out, is_deleting);
  return out;
}

PodContainer holder_of(const StartCandidate& candidate) {
  return {.namespace_ = candidate.container.name_space,
          .name = candidate.container.pod,
          .uid = candidate.pod->meta.uid,
          .container = candidate.container.container};
}

// Returns the labels of a pod by which its usage can be grouped. A label that differs between the pods of one
// workload, and a label that Carve has already read, is left out.
std::map<std::string, std::string> slice_labels(const std::map<std::string, std::string>& pod) {
  constexpr std::string_view left_out[] = {kubernetes::account_label,
                                           "carve.dev/sliced",
                                           "pod-template-hash",
                                           "controller-revision-hash",
                                           "pod-template-generation",
                                           "apps.kubernetes.io/pod-index",
                                           "statefulset.kubernetes.io/pod-name",
                                           "batch.kubernetes.io/controller-uid",
                                           "batch.kubernetes.io/job-completion-index",
                                           "controller-uid"};
  std::map<std::string, std::string> out;
  for (const auto& [key, value] : pod)
    if (out.size() < max_pod_labels && key.size() <= max_label_bytes &&
        std::ranges::find(left_out, key) == std::end(left_out))
      out[key] = value;
  return out;
}

api::SliceRequest request_for(const StartContext& context, const StartCandidate& candidate,
                              const kubernetes::PlacedSlice& placed) {
  api::SliceRequest out;
  const bool is_exclusive = placed.exclusive.value_or(false);
  for (const kubernetes::PlacedPart& part : placed.parts)
    out.placed.push_back({.device = text(part.device),
                          .memory_bytes = is_exclusive ? 0 : part.memory.count,
                          .share_bp = is_exclusive ? 0 : part.share.basis_points});
  out.amounts.exclusive = is_exclusive;
  out.amounts.policy = placed.policy;
  out.amounts.latency_class = placed.latency_class;
  out.amounts.isolation = placed.isolation;
  out.lifetime = Lifetime::until_deleted;
  const auto account = candidate.pod->meta.labels.find(kubernetes::account_label);
  out.account =
      account == candidate.pod->meta.labels.end() ? candidate.container.name_space : account->second;
  out.labels = slice_labels(candidate.pod->meta.labels);
  if (placed.spill.value_or(0) != 0) {
    out.oversubscribe = "managed";
    out.amounts.spill_bytes = *placed.spill;
  }
  invariant(out.placed.size() == placed.parts.size() && !out.placed.empty(),
            "a slice is requested with all its parts");
  out.slot = text(context.slot);
  out.holder = Holder{.pod = holder_of(candidate), .claim = {}};
  return out;
}

// Returns why the node cannot provide these parts. Empty if it has the devices.
std::string trouble_of(const kubernetes::PlacedSlice& placed, const std::map<Uuid, Bytes>& devices) {
  if (placed.parts.empty()) return "it lists no device";
  std::set<Uuid> named;
  for (const kubernetes::PlacedPart& part : placed.parts) {
    if (!named.insert(part.device).second) return fmt::format("it lists device {} twice", text(part.device));
    const auto device = devices.find(part.device);
    if (device == devices.end()) return fmt::format("this node has no device {}", text(part.device));
    if (part.memory > device->second)
      return fmt::format("it has {} of device {}, which has only {} usable", text(part.memory),
                         text(part.device), text(device->second));
  }
  return "";
}

StartDecision decide_one(const StartContext& context, const StartCandidate& candidate) {
  invariant(candidate.pod, "a container cannot start before its pod is known");
  const SeenPod& pod = *candidate.pod;
  const auto annotation = pod.meta.annotations.find(kubernetes::slices_annotation);
  if (annotation == pod.meta.annotations.end())
    return undecided(Kind::refuse, "pod {} was not placed by Carve: it has no annotation {}", pod.full_name(),
                     kubernetes::slices_annotation);
  const auto slices = kubernetes::read_slices(annotation->second);
  if (!slices) return undecided(Kind::refuse, "pod {}: {}", pod.full_name(), slices.error());
  if (slices->node != context.node || pod.node != context.node)
    return undecided(Kind::refuse, "pod {} was placed on node {}, but this is node {}", pod.full_name(),
                     (slices->node != context.node ? slices->node : pod.node).substr(0, 253), context.node);
  const auto placed = slices->containers.find(candidate.container.container);
  if (placed == slices->containers.end())
    return undecided(Kind::refuse, "pod {}: {} has no slice for container {}", pod.full_name(),
                     kubernetes::slices_annotation, candidate.container.container);
  if (const std::string trouble = trouble_of(placed->second, context.devices); !trouble.empty())
    return undecided(Kind::refuse, "pod {}, container {}: {}: {}", pod.full_name(),
                     candidate.container.container, kubernetes::slices_annotation, trouble);
  return {.kind = Kind::grant,
          .request = request_for(context, candidate, placed->second),
          .message = "",
          .pod = {}};
}

}  // namespace

std::vector<ContainerName> containers_with(const std::vector<ContainerDevices>& all, ContainerSlot slot) {
  std::set<ContainerName> found;
  for (const ContainerDevices& some : all)
    if (some.resource == slot_resource && std::ranges::find(some.devices, text(slot)) != some.devices.end())
      found.insert(some.container);
  return {found.begin(), found.end()};
}

StartDecision decide_start(const StartContext& context, std::span<const StartCandidate> candidates) {
  if (candidates.empty())
    return undecided(Kind::retry, "kubelet reports no container for slot {}", text(context.slot));
  const std::vector<StartCandidate> left = startable(candidates);
  if (left.empty())
    return undecided(Kind::retry,
                     "slot {} belongs to pod {}, which is not on this node according to the API server",
                     text(context.slot), candidates.front().container.text());
  if (left.size() > 1)
    return undecided(Kind::retry, "kubelet reports slot {} for both pod {} and pod {}", text(context.slot),
                     left[0].container.text(), left[1].container.text());
  StartDecision out = decide_one(context, left.front());
  out.pod = holder_of(left.front());
  return out;
}

bool may_pass(const api::Problem& problem) {
  if (problem.status == shown(FailureKind::unavailable).http_status) return true;
  for (const FailureKind kind : {FailureKind::insufficient_capacity, FailureKind::failed_precondition})
    if (problem.type == shown(kind).type) return true;
  return problem.type == "carve:no-agent" || problem.type == "carve:no-response";
}

}  // namespace carve::kubernetes::node
