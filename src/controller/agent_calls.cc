#include "controller/agent_calls.h"

#include <chrono>

#include "client/client.h"

namespace carve::controller {
namespace {

constexpr client::Settings call_settings{.patience = std::chrono::seconds(1),
                                         .socket_option = "--node NAME=SOCKET"};

}  // namespace

Outcome<AgentAnswer> AgentCalls::ask(const NodeObservation& node, const AgentCall& call, int64_t now_ns) {
  if (node.reachability == Reachability::unreachable)
    return failure(FailureKind::unavailable, "node {}: {}", node.record.name, node.problem);
  const auto silent = silent_since_ns_.find(node.record.name);
  if (silent != silent_since_ns_.end() && node.record.last_seen_ns <= silent->second)
    return failure(FailureKind::unavailable,
                   "node {}: its agent did not respond to a request; the controller calls it again after the "
                   "next successful poll; try again later",
                   node.record.name);
  auto answer = client::Client(node.record.socket, call_settings).ask(call.method, call.target, call.body);
  if (!answer) {
    silent_since_ns_[node.record.name] = now_ns;
    return failure(FailureKind::unavailable, "node {}: {}", node.record.name, answer.error().detail);
  }
  silent_since_ns_.erase(node.record.name);
  return AgentAnswer{answer->status, std::move(answer->type), std::move(answer->body)};
}

}  // namespace carve::controller
