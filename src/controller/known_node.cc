#include "controller/known_node.h"

#include "core/invariant.h"

namespace carve::controller {
namespace {

// An answer with changes is written to the database immediately, and one without changes at most once a
// minute. Each transaction is synced to the disk; one per poll would be 30 a minute for each node.
constexpr int64_t max_last_seen_age_ns = 60'000'000'000;

std::string counted(size_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace

KnownNode::KnownNode(NodeAddress address, const NodeRecord* earlier)
    : stored_(earlier != nullptr ? *earlier : NodeRecord{}) {
  NodeObservation first{.record = stored_};
  first.record.name = std::move(address.name);
  first.record.socket = std::move(address.socket);
  seen_ = std::make_shared<const NodeObservation>(std::move(first));
}

std::string KnownNode::text_of(const api::AgentReport& report) const {
  return fmt::format("carved {} at {} with {}, {}", report.version.version, record().socket,
                     counted(report.devices.size(), "device"), counted(report.slices.size(), "slice"));
}

std::vector<NodeChange> KnownNode::update(const Poll& poll, const workload::HostResources& host) {
  using enum NodeChange::Level;
  const NodeObservation& before = *seen_;
  const std::string& name = before.record.name;
  NodeObservation now = before;
  std::vector<NodeChange> changes;
  if (!poll.answer) {
    now.reachability = Reachability::unreachable;
    now.problem = poll.answer.error();
    if (before.reachability != now.reachability || before.problem != now.problem)
      changes.push_back(
          {warning, fmt::format("node {}: {}; {}", name,
                                before.reachability == Reachability::reachable ? "lost" : "not reached",
                                now.problem)});
    seen_ = std::make_shared<const NodeObservation>(std::move(now));
    return changes;
  }
  const api::AgentReport& report = *poll.answer;
  const auto started_ns = static_cast<int64_t>(report.version.started_ns);
  const bool restarted = before.record.agent_started_ns != 0 && before.record.agent_started_ns != started_ns;
  if (before.reachability != Reachability::reachable || restarted)
    changes.push_back({info, fmt::format("node {}: {}, {}", name, restarted ? "agent restarted" : "reached",
                                         text_of(report))});
  else if (before.report.devices.size() != report.devices.size())
    changes.push_back({info, fmt::format("node {}: number of devices changed from {} to {}", name,
                                         before.report.devices.size(), report.devices.size())});
  now.reachability = Reachability::reachable;
  now.problem.clear();
  now.answered_ns = poll.ended_ns;
  now.has_answered = true;
  now.report = report;
  now.host = host;
  now.record.agent_version = report.version.version;
  now.record.agent_started_ns = started_ns;
  if (now.record.first_seen_ns == 0) now.record.first_seen_ns = poll.ended_ns;
  now.record.last_seen_ns = poll.ended_ns;
  invariant(now.record.first_seen_ns != 0);
  seen_ = std::make_shared<const NodeObservation>(std::move(now));
  return changes;
}

bool KnownNode::must_be_stored() const {
  if (!differs_from_stored()) return false;
  NodeRecord but_for_the_time = record();
  but_for_the_time.last_seen_ns = stored_.last_seen_ns;
  const int64_t age_ns = record().last_seen_ns - stored_.last_seen_ns;
  // The age is negative if the clock was set back.
  return but_for_the_time != stored_ || seen_->reachability == Reachability::unreachable || age_ns < 0 ||
         age_ns >= max_last_seen_age_ns;
}

}  // namespace carve::controller
