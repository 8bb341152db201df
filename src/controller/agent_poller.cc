#include "controller/agent_poller.h"

#include <chrono>
#include <utility>

#include "os/capabilities.h"
#include "os/clock.h"
#include "os/log.h"

namespace carve::controller {
namespace {

constexpr client::Settings settings{.patience = std::chrono::seconds(5),
                                    .socket_option = "--node NAME=SOCKET"};

void carry_out(const client::AgentClient& agent, const AgentRequest& request) {
  if (request.change)
    if (const auto changed = agent.change_node(*request.change); !changed)
      os::log::warning("the agent did not accept its new settings: {}", changed.error().detail);
  for (const std::string& name : request.ended_slices)
    if (const auto ended = agent.end(name); !ended)
      os::log::warning("cannot end slice {}: {}", name, ended.error().detail);
}

}  // namespace

AgentPoller::AgentPoller(const os::Loop& loop, std::string socket, std::function<void(const Poll&)> ended)
    : loop_(loop),
      agent_(std::move(socket), settings),
      ended_(std::move(ended)),
      // The thread reads agents' answers and needs no capability.
      worker_({.begin = [] { (void)os::keep_capabilities({}); }}) {}

AgentPoller::~AgentPoller() { stop(); }

Poll AgentPoller::poll(const AgentRequest& request) const {
  carry_out(agent_, request);
  auto report = agent_.report([this] { return stops_.load(); });
  const int64_t ended_ns = os::utc_ns();
  if (!report) return {.ended_ns = ended_ns, .answer = tl::unexpected(std::move(report.error().detail))};
  return {.ended_ns = ended_ns, .answer = std::move(*report)};
}

bool AgentPoller::begin_poll(AgentRequest request) {
  if (std::exchange(is_polling_, true)) return false;
  worker_.run([this, lives = std::weak_ptr(lives_), request = std::move(request)] {
    loop_.post([this, lives, ended = poll(request)] {
      if (lives.expired()) return;
      is_polling_ = false;
      ended_(ended);
    });
  });
  return true;
}

void AgentPoller::stop() {
  stops_ = true;
  worker_.stop();
}

}  // namespace carve::controller
