// `carve stop NAME...`: ends all processes of a slice, then the slice.
#include <chrono>
#include <thread>

#include "cli/verbs.h"
#include "core/failure.h"
#include "wire/api/slice.h"

namespace carve::cli {
namespace {

// The processes get SIGKILL, so they end immediately, unless one is blocked in the kernel in a call to a
// device.
constexpr std::chrono::seconds end_patience{60};
constexpr std::chrono::milliseconds poll_interval{10};

// Returns whether the slice ended in time. Prints a message if it did not.
bool wait_for_end(Context& context, const client::AgentClient& agent, const api::Slice& stopped) {
  const auto deadline = std::chrono::steady_clock::now() + end_patience;
  for (;;) {
    const auto ended = has_ended(agent, stopped.name, stopped.created_ns);
    if (!ended) {
      complain(ended.error());
      break;
    }
    if (*ended) return true;
    if (std::chrono::steady_clock::now() >= deadline) {
      complain({.detail = fmt::format("slice {} still has processes after {} s; carve show {} lists them",
                                      stopped.name, end_patience.count(), stopped.name)});
      break;
    }
    std::this_thread::sleep_for(poll_interval);
  }
  context.status = failed_status;
  return false;
}

}  // namespace

client::Answer<bool> has_ended(const client::AgentClient& agent, const std::string& name,
                               uint64_t created_ns) {
  const auto now = agent.slice(name);
  if (now) return now->ended_ns != 0 || now->created_ns != created_ns;
  if (now.error().type == shown(FailureKind::not_found).type) return true;
  return tl::unexpected(now.error());
}

void stop_slices(Context& context, const client::AgentClient& agent, const std::vector<std::string>& names,
                 StopWait wait, const std::function<void(const std::string&)>& report) {
  std::vector<api::Slice> stopped;
  for (const std::string& name : names)
    answered(context, agent.end(name), [&](const api::Slice& slice) { stopped.push_back(slice); });
  for (const api::Slice& slice : stopped)
    if (wait == StopWait::none || wait_for_end(context, agent, slice)) report(slice.name);
}

void print_name(const std::string& name) { fmt::print("{}\n", name); }

void add_stop(CLI::App& app, Context& context) {
  CLI::App* verb =
      app.add_subcommand("stop", "End all processes of a slice, delete it, and wait until it has ended");
  auto names = std::make_shared<std::vector<std::string>>();
  auto does_not_wait = std::make_shared<bool>(false);
  verb->add_option("NAME", *names, "The slices")->required();
  verb->add_flag("--no-wait", *does_not_wait, "Return as soon as the signal has been sent to the processes");
  verb->footer("  carve stop a b");
  verb->callback([&context, names, does_not_wait] {
    stop_slices(context, context.agent(), *names, *does_not_wait ? StopWait::none : StopWait::until_ended,
                print_name);
  });
}

}  // namespace carve::cli
