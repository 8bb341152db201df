#include "controller/caller_slices.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>

#include "os/clock.h"
#include "os/log.h"
#include "os/server_identity.h"
#include "os/socket.h"
#include "wire/api/json.h"
#include "wire/api/node.h"

namespace carve::controller {
namespace {

constexpr int64_t patience_ns = os::second;
constexpr int64_t late_interval_ns = 100 * os::millisecond;
constexpr size_t max_answer_bytes = 64 << 10;

std::string request_about(const os::ProcessId& process) {
  return fmt::format("GET /v1/processes/{}?start={} HTTP/1.1\r\nHost: carve\r\nConnection: close\r\n\r\n",
                     process.pid, process.start);
}

// Returns the slice of a whole answer, empty for none; no value if the agent cannot tell.
std::optional<std::string> slice_in(const std::string& answer) {
  const size_t body = answer.find("\r\n\r\n");
  if (!answer.starts_with("HTTP/1.1 200 ") || body == std::string::npos) return std::nullopt;
  auto document = api::read<api::ProcessSlice>(answer.substr(body + 4), api::Reading::lenient);
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

// What is asked about one caller.
struct CallerSlices::Question {
  http::Caller caller;
  Then then;
  size_t waits_for = 0;  // Calls.
  bool is_known = true;  // Every agent has answered.

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

struct CallerSlices::Call {
  size_t agent;
  os::Fd socket;
  int64_t begun_ns;
  std::weak_ptr<Question> question;
  std::string received = {};
};

CallerSlices::CallerSlices(os::Loop& loop, const std::vector<std::string>& sockets) : loop_(loop) {
  for (const std::string& socket : sockets) agents_.push_back({.socket = socket});
  loop_.every(late_interval_ns, [this, lives = std::weak_ptr(lives_)] {
    if (!lives.expired()) end_late_calls();
  });
}

CallerSlices::~CallerSlices() {
  for (const auto& [fd, call] : calls_) loop_.forget(fd);
}

std::shared_ptr<void> CallerSlices::find(const http::Caller& caller, Then then) {
  auto question = std::make_shared<Question>(Question{.caller = caller, .then = std::move(then)});
  if (!caller.process()) {
    question->decide({});
    return question;
  }
  question->waits_for = 1;  // No answer decides before every agent is asked.
  for (size_t agent = 0; agent < agents_.size(); ++agent)
    if (call(agent, question))
      ++question->waits_for;
    else
      question->is_known = false;
  question->answer("");
  return question;
}

bool CallerSlices::call(size_t number, const std::shared_ptr<Question>& question) {
  Agent& agent = agents_[number];
  if (agent.silent && agent.calls > 0) return false;
  auto socket = os::connect_to(agent.socket, SOCK_STREAM | SOCK_NONBLOCK);
  if (!socket || os::untrusted_server(socket->get())) return false;
  const std::string request = request_about(*question->caller.process());
  if (send(socket->get(), request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size()))
    return false;
  const int fd = socket->get();
  calls_[fd] = std::make_unique<Call>(Call{.agent = number,
                                           .socket = std::move(*socket),
                                           .begun_ns = os::monotonic_ns(),
                                           .question = agent.silent ? std::weak_ptr<Question>() : question});
  ++agent.calls;
  loop_.watch(fd, EPOLLIN, [this, fd](uint32_t) { receive(fd); });
  return !agent.silent;
}

void CallerSlices::receive(int fd) {
  Call& call = *calls_.at(fd);
  char bytes[4096];
  const ssize_t n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
  if (n < 0 && errno == EAGAIN) return;
  if (n > 0 && call.received.size() < max_answer_bytes) {
    call.received.append(bytes, static_cast<size_t>(n));
    return;
  }
  Agent& agent = agents_[call.agent];
  if (agent.silent) os::log::info("the agent at {} answers again", agent.socket);
  agent.silent = false;
  end(fd, n == 0 ? slice_in(call.received) : std::nullopt);
}

void CallerSlices::end(int fd, const std::optional<std::string>& slice) {
  loop_.forget(fd);
  const auto call = std::move(calls_.extract(fd).mapped());
  --agents_[call->agent].calls;
  if (const auto question = call->question.lock()) question->answer(slice);
}

void CallerSlices::end_late_calls() {
  const int64_t now = os::monotonic_ns();
  std::vector<int> late;
  for (const auto& [fd, call] : calls_)
    if (now - call->begun_ns > patience_ns) late.push_back(fd);
  for (const int fd : late) {
    Agent& agent = agents_[calls_.at(fd)->agent];
    if (!agent.silent)
      os::log::warning(
          "the agent at {} does not answer; callers inside its slices are known by their cgroups",
          agent.socket);
    agent.silent = true;
    end(fd, std::nullopt);
  }
}

}  // namespace carve::controller
