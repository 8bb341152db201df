#include "cli/event_watch.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include "wire/api/json.h"

namespace carve::cli {
namespace {

constexpr auto retry_interval = std::chrono::milliseconds(500);
constexpr int interrupted_status = 128 + SIGINT;

void print(const Context& context, const client::StreamEvent& event) {
  const auto document = api::read<api::Event>(event.data, api::Reading::lenient);
  if (!document)
    return complain({.title = "event", .detail = "an event cannot be read: " + document.error()});
  fmt::print("{}\n", context.json() ? api::write(*document) : line_of(*document));
}

}  // namespace

std::string line_of(const api::Event& e) {
  return fmt::format("{}  {}{}", clock_text(e.time_ns), e.slice.empty() ? "" : e.slice + ": ",
                     harmless(e.text));
}

void watch_events(Context& context) {
  // Every event is flushed, so no output is lost here.
  signal(SIGINT, [](int) { _exit(interrupted_status); });
  const client::AgentClient agent = context.agent();
  std::string last_id;
  bool opened_once = false;
  bool loss_told = false;
  while (true) {
    const client::WatchEnd ended = agent.watch_events(last_id, [&](const auto& event) {
      print(context, event);
      last_id = event.id;
    });
    opened_once = opened_once || ended.opened;
    if (ended.opened) loss_told = false;
    const bool gone = ended.problem.type == "carve:gone";
    const bool lost = ended.problem.type == "carve:no-agent" || ended.problem.type == "carve:no-response";
    if (gone && !last_id.empty()) {
      complain({.title = "gone", .detail = "events were lost, because the agent keeps only the newest ones"});
      last_id.clear();
      continue;
    }
    if (!lost || !opened_once) {
      complain(ended.problem);
      context.status = context.problem_status;
      return;
    }
    if (!loss_told) complain({.title = "lost", .detail = ended.problem.detail + "; waiting for the agent"});
    loss_told = true;
    std::this_thread::sleep_for(retry_interval);
  }
}

}  // namespace carve::cli
