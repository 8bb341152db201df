#include "controller/caller_slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "client/agent_client.h"
#include "os/clock.h"
#include "os/log.h"
#include "wire/api/json.h"
#include "wire/api/node.h"

namespace carve::controller {
namespace {

constexpr int64_t patience_ns = os::second;
constexpr int64_t look_interval_ns = 100 * os::millisecond;

// Returns the slice in the agent's answer, or an empty string if the process is in no slice; no value if the
// agent does not know.
std::optional<std::string> slice_in(const std::optional<std::string>& body) {
  auto document = api::read<api::ProcessSlice>(body.value_or(""), api::Reading::lenient);
  return document ? std::optional(std::move(document->slice)) : std::nullopt;
}

bool is_group_of_slices(std::string_view name) {
  constexpr std::string_view prefix = "carve-";
  constexpr size_t hash_characters = 8;
  return name.size() == prefix.size() + hash_characters && name.starts_with(prefix) &&
         name.find_first_not_of("0123456789abcdef", prefix.size()) == std::string_view::npos;
}

}  // namespace

std::optional<std::string> slice_in_cgroups(const std::map<std::string, std::string>& cgroups) {
  for (const auto& [controllers, path] : cgroups) {
    std::string_view left = path;
    bool below_group = false;
    while (!left.empty()) {
      const std::string_view name = left.substr(0, left.find('/'));
      left.remove_prefix(std::min(name.size() + 1, left.size()));
      if (below_group && !name.empty()) return std::string(name);
      below_group = is_group_of_slices(name);
    }
  }
  return std::nullopt;
}

// A lookup of one caller's slice.
struct CallerSlices::Question {
  http::Caller caller;
  Then then;
  size_t waits_for = 0;  // Number of calls.
  bool is_known = true;  // Every agent has responded.

  void answer(const std::optional<std::string>& slice) {
    --waits_for;
    is_known &= slice.has_value();
    if (slice && !slice->empty()) return decide(*slice);
    if (waits_for == 0) decide({});
  }
  void decide(const std::string& slice) {
    if (!then) return;
    const Then act = std::exchange(then, nullptr);
    if (!slice.empty()) return act(caller.inside(slice));
    const auto shown = is_known ? std::nullopt : slice_in_cgroups(os::cgroups_of(caller.process()->pid));
    act(shown ? caller.inside(*shown) : caller);
  }
};

CallerSlices::CallerSlices(os::Loop& loop, const std::vector<std::string>& sockets) : loop_(loop) {
  for (const std::string& socket : sockets) agents_.emplace_back(loop, socket);
}

std::shared_ptr<void> CallerSlices::find(const http::Caller& caller, Then then) {
  auto question = std::make_shared<Question>(Question{.caller = caller, .then = std::move(then)});
  if (!caller.process()) {
    question->decide({});
    return question;
  }
  question->waits_for = 1;  // Holds back the result until every agent was called.
  for (Agent& agent : agents_)
    if (ask(agent, question))
      ++question->waits_for;
    else
      question->is_known = false;
  question->answer("");
  return question;
}

bool CallerSlices::ask(Agent& agent, const std::shared_ptr<Question>& question) {
  if (agent.connection.is_silent()) return false;
  if (std::exchange(agent.was_silent, false))
    os::log::info("the agent at {} responds again", agent.connection.socket());
  const os::ProcessId process = *question->caller.process();
  const std::weak_ptr<Question> held = question;
  look_for_silent_agents();
  return agent.connection.get(client::process_slice_path(process.pid, process.start), os::monotonic_ns(),
                              held, [held](const auto& body) {
                                if (const auto asked = held.lock()) asked->answer(slice_in(body));
                              });
}

void CallerSlices::look_for_silent_agents() {
  if (std::exchange(is_looking_, true)) return;
  loop_.after(look_interval_ns, [this, lives = std::weak_ptr(lives_)] {
    if (lives.expired()) return;
    is_looking_ = false;
    for (Agent& agent : agents_) {
      if (agent.connection.give_up(os::monotonic_ns() - patience_ns) > 0 &&
          !std::exchange(agent.was_silent, true))
        os::log::warning(
            "the agent at {} does not respond; callers inside its slices are identified by their cgroups",
            agent.connection.socket());
      if (agent.connection.is_awaited()) look_for_silent_agents();
    }
  });
}

}  // namespace carve::controller
