#include "controller/known_node.h"

#include "core/invariant.h"

namespace carve::controller {
namespace {

// An answer that changes something is written to the database immediately, an answer without changes at most
// once a minute. Each transaction is synced to the disk; with one per poll there would be 30 a minute for
// each node.
constexpr int64_t max_last_seen_age_ns = 60'000'000'000;

std::string counted(size_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::vector<api::NodeDevice> devices_of(const api::AgentReport& report) {
  std::vector<api::NodeDevice> out;
  for (const api::Device& device : report.devices)
    out.push_back({.index = device.index,
                   .uuid = device.uuid,
                   .name = device.name,
                   .health = device.health,
                   .usable_bytes = device.usable_bytes,
                   .free_bytes = device.free_bytes});
  return out;
}

}  // namespace

KnownNode::KnownNode(NodeAddress address, const NodeRecord* earlier)
    : record_(earlier != nullptr ? *earlier : NodeRecord{}), stored_(record_) {
  record_.name = std::move(address.name);
  record_.socket = std::move(address.socket);
}

std::string KnownNode::text_of(const api::AgentReport& report) const {
  return fmt::format("carved {} at {} with {}, {}", report.version.version, record_.socket,
                     counted(report.devices.size(), "device"), counted(report.slices.size(), "slice"));
}

std::vector<NodeChange> KnownNode::update(const Poll& poll) {
  using enum NodeChange::Level;
  const Reachability before = reachability_;
  std::vector<NodeChange> changes;
  if (!poll.answer) {
    reachability_ = Reachability::unreachable;
    const std::string& problem = poll.answer.error();
    if (before != reachability_ || problem_ != problem)
      changes.push_back(
          {warning, fmt::format("node {}: {}; {}", record_.name,
                                before == Reachability::reachable ? "lost" : "not reached", problem)});
    problem_ = problem;
    return changes;
  }
  const api::AgentReport& report = *poll.answer;
  const auto started_ns = static_cast<int64_t>(report.version.started_ns);
  const bool restarted = record_.agent_started_ns != 0 && record_.agent_started_ns != started_ns;
  reachability_ = Reachability::reachable;
  problem_.clear();
  if (before != reachability_ || restarted)
    changes.push_back({info, fmt::format("node {}: {}, {}", record_.name,
                                         restarted ? "agent restarted" : "reached", text_of(report))});
  else if (devices_.size() != report.devices.size())
    changes.push_back({info, fmt::format("node {}: devices changed, {} to {}", record_.name, devices_.size(),
                                         report.devices.size())});
  record_.agent_version = report.version.version;
  record_.agent_started_ns = started_ns;
  if (record_.first_seen_ns == 0) record_.first_seen_ns = poll.ended_ns;
  record_.last_seen_ns = poll.ended_ns;
  devices_ = devices_of(report);
  slices_ = static_cast<uint32_t>(report.slices.size());
  invariant(record_.first_seen_ns != 0);
  invariant(problem_.empty());
  return changes;
}

api::KnownNode KnownNode::document() const {
  return {.name = record_.name,
          .socket = record_.socket,
          .reachability = reachability_,
          .problem = problem_,
          .agent_version = record_.agent_version,
          .agent_started_ns = static_cast<uint64_t>(record_.agent_started_ns),
          .first_seen_ns = static_cast<uint64_t>(record_.first_seen_ns),
          .last_seen_ns = static_cast<uint64_t>(record_.last_seen_ns),
          .devices = devices_,
          .slices = slices_};
}

bool KnownNode::must_be_stored() const {
  if (!differs_from_stored()) return false;
  NodeRecord but_for_the_time = record_;
  but_for_the_time.last_seen_ns = stored_.last_seen_ns;
  const int64_t age_ns = record_.last_seen_ns - stored_.last_seen_ns;
  // A clock that was set back makes the age negative.
  return but_for_the_time != stored_ || reachability_ == Reachability::unreachable || age_ns < 0 ||
         age_ns >= max_last_seen_age_ns;
}

}  // namespace carve::controller
