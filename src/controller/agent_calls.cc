#include "controller/agent_calls.h"

#include <chrono>

#include "client/client.h"

namespace carve::controller {
namespace {

constexpr client::Settings call_settings{.patience = std::chrono::seconds(1),
                                         .socket_option = "--node NAME=SOCKET"};

}  // namespace

Outcome<AgentAnswer> AgentCalls::ask(const api::KnownNode& node, const AgentCall& call, int64_t now_ns) {
  if (node.reachability == Reachability::unreachable)
    return failure(FailureKind::unavailable, "node {}: {}", node.name, node.problem);
  const auto silent = silent_since_ns_.find(node.name);
  if (silent != silent_since_ns_.end() && node.last_seen_ns <= silent->second)
    return failure(FailureKind::unavailable,
                   "node {}: its agent did not respond to a request; the controller calls it again after the "
                   "next successful poll; try again later",
                   node.name);
  auto answer = client::Client(node.socket, call_settings).ask(call.method, call.target, call.body);
  if (!answer) {
    silent_since_ns_[node.name] = static_cast<uint64_t>(now_ns);
    return failure(FailureKind::unavailable, "node {}: {}", node.name, answer.error().detail);
  }
  silent_since_ns_.erase(node.name);
  return AgentAnswer{answer->status, std::move(answer->type), std::move(answer->body)};
}

}  // namespace carve::controller
