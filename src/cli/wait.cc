// `carve wait NAME...`: waits for the ends of detached programs and prints their exit statuses.
#include <chrono>
#include <thread>

#include "cli/detached_programs.h"
#include "cli/verbs.h"
#include "runner/runner.h"

namespace carve::cli {
namespace {

constexpr std::chrono::milliseconds wait_interval{50};

// Waits until the slice has ended too, so that its name and its memory are free. An agent that is not running
// does not delay the result.
void wait_for_slice(const client::AgentClient& agent, const std::string& name, uint64_t created_ns) {
  for (;;) {
    const auto ended = has_ended(agent, name, created_ns);
    if (!ended || *ended) return;
    std::this_thread::sleep_for(wait_interval);
  }
}

void wait_for_program(Context& context, const std::string& name) {
  const auto program = required_program(context, name);
  if (!program) return;
  for (;;) {
    const auto seen = runner::read_program(program->directory);
    if (seen && seen->phase() == runner::ProgramPhase::running) {
      std::this_thread::sleep_for(wait_interval);
      continue;
    }
    if (!seen || seen->phase() != runner::ProgramPhase::ended) {
      complain({.detail = seen ? fmt::format("the exit status of slice {} is unknown: the program's "
                                             "supervisor was killed, or the machine was restarted",
                                             name)
                               : seen.error().message});
      context.status = context.problem_status;
      return;
    }
    wait_for_slice(context.agent(), name, program->slice_created_ns);
    fmt::print("{}\n", seen->state.exit_status);
    std::fflush(stdout);
    context.status = static_cast<int>(seen->state.exit_status);
    return;
  }
}

}  // namespace

void add_wait(CLI::App& app, Context& context) {
  CLI::App* verb =
      app.add_subcommand("wait", "Wait for the end of detached programs and print their exit statuses");
  auto names = std::make_shared<std::vector<std::string>>();
  verb->add_option("NAME", *names, "Slices of carve run -d")->required();
  verb->footer(
      "Exit status: that of the last program; 128+N if signal N ended it; 125 if carve fails.\n"
      "  carve wait train");
  verb->callback([&context, names] {
    context.problem_status = runner::failed_status;
    for (const std::string& name : *names) wait_for_program(context, name);
  });
}

}  // namespace carve::cli
