#include "kubernetes/node/container_reporter.h"

#include <algorithm>

#include "kubernetes/node/rules/container_start.h"
#include "os/clock.h"
#include "os/log.h"
#include "os/process.h"

namespace carve::kubernetes::node {
namespace {

constexpr int64_t quick_ns = 200 * os::millisecond, slow_ns = 5 * os::second;
constexpr int64_t expected_for_ns = 60 * os::second;
constexpr int64_t capability_age_ns = 30 * os::second;  // The runtime may be upgraded in the meantime.

}  // namespace

void ContainerReporter::expect() {
  {
    const os::MutexLock lock(mutex_);
    expected_until_ = os::monotonic_ns() + expected_for_ns;
  }
  worker_.wake();
}

RuntimeCapability ContainerReporter::capability() const {
  const os::MutexLock lock(mutex_);
  return capability_;
}

// If a runtime does not respond, its last known capability is kept.
void ContainerReporter::ask_capability(int64_t now) {
  if (asked_at_ != 0 && now - asked_at_ < capability_age_ns) return;
  const auto facts = runtime_.facts();
  if (!facts) {
    if (facts.error() != last_problem_) os::log::warning("{}", facts.error());
    last_problem_ = facts.error();
    return;
  }
  last_problem_.clear();
  const bool is_first = asked_at_ == 0;
  asked_at_ = now;
  const RuntimeCapability found = capability_of(*facts);
  {
    const os::MutexLock lock(mutex_);
    if (found == capability_ && !is_first) return;
    capability_ = found;
  }
  os::log::info("container runtime {} {}: {}", facts->name, facts->version,
                found.has_cdi ? "CDI is enabled" : found.message);
  hooks_.found(found);
}

void ContainerReporter::report(const ContainerReport& container) {
  const auto info = runtime_.info(container.id);
  const auto pid = info ? pid_of(*info) : std::nullopt;
  if (!pid) return;  // The container has ended, or will be retried.
  if (container.is_shared && !mounts_attach_directory(*info, container.slot)) {
    reported_.insert(container.key());
    return;
  }
  const auto mounts = os::read_file(fmt::format("/proc/{}/mountinfo", *pid));
  // Without CAP_SYS_PTRACE, the mounts of most containers cannot be read. Then only the agent verifies the
  // process.
  if (mounts && !has_attach_directory(*mounts, container.slot)) {
    reported_.insert(container.key());
    hooks_.not_mounted(
        container.holder,
        fmt::format("container {} runs without its slice: the runtime ignored the CDI device {}={}",
                    container.holder.container, slot_resource, container.slot));
    return;
  }
  const auto done = agent_.add_container(container.slice, {.pid = *pid, .id = container.id});
  if (!done) {
    os::log::warning("container {} of pod {}/{}: {}", container.id, container.holder.namespace_,
                     container.holder.name, done.error().detail);
    return;
  }
  reported_.insert(container.key());
}

// A pod that tried to attach before its claim was known to list it is looked up first.
bool ContainerReporter::report_claims(const api::AgentReport& agent,
                                      const std::vector<RuntimeContainer>& containers) {
  bool has_claims = false;
  for (const api::Slice& slice : agent.slices) {
    if (!slice.holder || !slice.holder->claim) continue;
    has_claims = true;
    if (!slice.unknown_pods.empty()) hooks_.look_up(slice);
  }
  const auto unexamined = find_unexamined(agent.slices, containers, reported_);
  if (unexamined.empty()) return has_claims;
  const auto claims = hooks_.claims();
  if (!claims) return has_claims;  // They are examined in the next turn.
  for (const RuntimeContainer& container : unexamined) report_claim(agent, container, *claims);
  return has_claims;
}

void ContainerReporter::report_claim(const api::AgentReport& agent, const RuntimeContainer& container,
                                     const std::vector<ContainerClaims>& claims) {
  const auto info = runtime_.info(container.id);
  const auto pid = info ? pid_of(*info) : std::nullopt;
  if (!pid) return;  // The container has ended, or will be retried.
  const api::Slice* const slice = slice_at(agent.slices, mounted_attach_point(*info));
  if (slice == nullptr) {
    reported_.insert(claim_key(container));
    return;
  }
  const PodContainer pod = pod_container(container);
  const bool is_known = std::ranges::find(slice->pods, pod.uid, &ClaimPod::uid) != slice->pods.end();
  if (!is_known && !looked_up_.contains(container.id)) {
    if (hooks_.look_up(*slice)) looked_up_.insert(container.id);
    return;  // The next turn sees the claim's pods.
  }
  const std::string refusal = claim_refusal(*slice, pod, claims);
  const auto done = agent_.add_container(slice->name, {.pid = *pid, .id = container.id, .refusal = refusal});
  if (!done) {
    os::log::warning("container {} of pod {}/{}: {}", container.id, pod.namespace_, pod.name,
                     done.error().detail);
    return;
  }
  reported_.insert(claim_key(container));
  looked_up_.erase(container.id);
  if (!refusal.empty()) hooks_.refused(pod, refusal);
}

void ContainerReporter::report_containers() {
  const auto agent = agent_.report();
  if (!agent) {
    reported_.clear();  // Sends them to the next agent again.
    return;
  }
  const auto containers = runtime_.running();
  if (!containers) return;
  for (const ContainerReport& container : find_unreported(agent->slices, *containers, reported_))
    report(container);
  has_claims_ = report_claims(*agent, *containers);
  std::erase_if(reported_, [&](const std::string& key) {
    return std::ranges::none_of(*containers, [&](const RuntimeContainer& c) { return key.ends_with(c.id); });
  });
}

int64_t ContainerReporter::turn() {
  const int64_t now = os::monotonic_ns();
  ask_capability(now);
  report_containers();
  const os::MutexLock lock(mutex_);
  if (now < expected_until_ || asked_at_ == 0) return quick_ns;
  return has_claims_ ? os::second : slow_ns;
}

}  // namespace carve::kubernetes::node
