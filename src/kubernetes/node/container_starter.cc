#include "kubernetes/node/container_starter.h"

#include <algorithm>

namespace carve::kubernetes::node {
namespace {

constexpr int64_t first_wait_ns = 50'000'000, max_wait_ns = 1'000'000'000;

}  // namespace

Result<StartDecision, std::string> ContainerStarter::decide(ContainerSlot slot) {
  const auto list = sources_.list();
  if (!list) return tl::unexpected(list.error());
  std::vector<StartCandidate> candidates;
  for (const ContainerName& name : containers_with(*list, slot)) {
    auto pod = sources_.pod(name.name_space, name.pod);
    if (!pod) return tl::unexpected(pod.error());
    candidates.push_back({.container = name, .pod = std::move(*pod)});
  }
  const auto report = agent_.report();
  if (!report) return tl::unexpected(report.error().detail);
  StartContext context{.node = sources_.node, .slot = slot, .devices = {}};
  for (const api::Device& device : report->devices)
    if (const auto uuid = parse_uuid(device.uuid)) context.devices[*uuid] = Bytes{device.usable_bytes};
  return decide_start(context, candidates);
}

ContainerStarter::Round ContainerStarter::grant(const StartDecision& decision) {
  const auto slice = agent_.grant(decision.request);
  if (slice) {
    sources_.granted(decision.request, *slice);
    return {};
  }
  if (may_pass(slice.error())) sources_.look_for_orphans();
  return {.message = slice.error().detail,
          .may_change = may_pass(slice.error()),
          .pod = decision.request.holder->pod};
}

ContainerStarter::Round ContainerStarter::try_once(ContainerSlot slot) {
  if (const RuntimeCapability runtime = sources_.runtime(); !runtime.is_known)
    return {.message = runtime.message, .may_change = true, .pod = std::nullopt};
  const auto decision = decide(slot);
  if (!decision) return {.message = decision.error(), .may_change = true, .pod = std::nullopt};
  if (decision->kind == StartDecision::Kind::grant) return grant(*decision);
  return {.message = decision->message,
          .may_change = decision->kind == StartDecision::Kind::retry,
          .pod = decision->pod};
}

Outcome<void> ContainerStarter::start(ContainerSlot slot, const std::function<bool()>& is_over) {
  const int64_t end = sources_.now() + max_start_ns;
  int64_t wait = first_wait_ns;
  while (true) {
    const Round round = try_once(slot);
    if (round.message.empty()) return {};
    const bool may_wait = round.may_change && !is_over() && sources_.now() + wait <= end;
    if (may_wait) sources_.sleep(wait);
    if (!may_wait || is_over()) {
      sources_.refused(round.pod, round.message);
      return failure(FailureKind::failed_precondition, "{}", round.message);
    }
    wait = std::min(wait * 2, max_wait_ns);
  }
}

}  // namespace carve::kubernetes::node
