// Any bytes as a pod, as its annotation, as a node or as an answer of the runtime: either a container starts
// with exactly what a readable annotation contains, or there is a message.
#include <cstdint>
#include <cstdlib>

#include "kubernetes/format/pod_slices.h"
#include "kubernetes/node/rules/container_start.h"
#include "kubernetes/node/rules/ledger_drift.h"
#include "kubernetes/node/rules/node_object.h"
#include "kubernetes/node/rules/pod_object.h"
#include "kubernetes/node/rules/slice_updates.h"
#include "wire/api/json_value.h"

namespace {

using namespace carve;
using namespace carve::kubernetes::node;

void check(bool is_true) {
  if (!is_true) std::abort();
}

void start(const SeenPod& pod) {
  StartContext context{.node = "n1", .slot = {17}, .devices = {}};
  context.devices[*parse_uuid("GPU-00000000-0000-0000-0000-000000000001")] = 16_GiB;
  const StartCandidate candidate{.container = {pod.meta.name_space, pod.meta.name, "web"}, .pod = pod};
  const StartDecision decision = decide_start(context, std::span(&candidate, 1));
  if (decision.kind != StartDecision::Kind::grant) return check(!decision.message.empty());
  check(!pod.is_over && pod.node == context.node);
  const auto slices = kubernetes::read_slices(pod.meta.annotations.at(kubernetes::slices_annotation));
  check(slices && slices->node == context.node);
  const kubernetes::PlacedSlice& placed = slices->containers.at("web");
  check(placed.parts.size() == decision.request.placed.size() && !placed.parts.empty());
  for (size_t i = 0; i < placed.parts.size(); ++i) {
    check(context.devices.contains(placed.parts[i].device));
    check(decision.request.amounts.exclusive ||
          decision.request.placed[i].memory_bytes == placed.parts[i].memory.count);
  }
  check(decision.request.holder->pod->uid == pod.meta.uid && decision.request.slot == "s017");
  check(api::parse(api::write(decision.request)).has_value());
}

void advertise_on(const SeenNode& node, std::string_view text) {
  AdvertisementInput in{
      .node = "n1",
      .agent = api::AgentReport{},
      .agent_problem = "",
      .desired = read_label_settings(node.meta.labels),
      .runtime = capability_of({"containerd", std::string(text.substr(0, 40)), std::string(text)}),
      .host = {},
      .pods = {{"u", node.meta}},
      .has_other_plugin = node.has_other_plugin()};
  const Advertisement wanted = advertise(in);
  if (const auto patch = metadata_patch(node, wanted)) check(api::parse(*patch).has_value());
  if (const auto patch = status_patch(node, wanted, "t")) check(api::parse(*patch).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  SeenPod annotated;
  annotated.meta.name_space = "a";
  annotated.meta.name = "p";
  annotated.meta.uid = "u";
  annotated.meta.annotations[kubernetes::slices_annotation] = std::string(text);
  annotated.node = "n1";
  start(annotated);
  if (const auto pod = read_pod_object(text))
    start(*pod);
  else
    check(!pod.error().empty());
  const std::string requested = requested_limit(text);
  check(requested.empty() || requested.starts_with("container "));
  const auto results = find_results({}, "n1", {{"u", annotated.meta}}, {});
  check(results.size() <= kubernetes::max_change_results);
  if (const auto node = read_node_object(text)) advertise_on(*node, text);
  if (const auto ledger = kubernetes::read_ledger(text)) {
    check(kubernetes::read_ledger(api::write(*ledger)) == *ledger);
    LastingDrift drift;
    drift.assume(*ledger);
    check(drift.lasting(ledger->parts, 0).parts.size() <= kubernetes::max_ledger_parts);
  } else {
    check(!ledger.error().empty());
  }
  static_cast<void>(pid_of(text));
  static_cast<void>(has_attach_directory(text, "s017"));
  return 0;
}
