// `carve wait`: waits for the ends of detached programs and prints their exit statuses, or, with --for, for states
// of objects (object_wait.h).
#include <chrono>
#include <thread>

#include "cli/detached_programs.h"
#include "cli/object_wait.h"
#include "cli/time_span.h"
#include "cli/verbs.h"
#include "cli/wait_goal.h"
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

// Returns whether the words name objects of the controller, as in "service/a".
bool names_objects(const ObjectWaitOptions& options) {
  return !options.goal.empty() || options.words.front().find('/') != std::string::npos;
}

}  // namespace

void add_wait(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand(
      "wait",
      "Wait for the end of detached programs and print their exit statuses, or for states of objects");
  auto options = std::make_shared<ObjectWaitOptions>();
  verb->add_option("NAME", options->words,
                   "Slices of carve run -d; with --for, service/NAME... or service NAME...")
      ->required();
  verb->add_option("--for", options->goal,
                   "State of objects to wait for: condition=NAME[=VALUE], delete, or jsonpath=PATH[=VALUE]. "
                   "Ready, Complete "
                   "and Failed follow from the phase")
      ->type_name("STATE")
      ->check([](const std::string& text) {
        const auto goal = parse_wait_goal(text);
        return goal ? std::string() : goal.error();
      });
  verb->add_option("-n,--namespace", options->name_space, "Namespace of the objects")->capture_default_str();
  verb->add_option("--timeout", options->timeout, "Maximum wait for all objects, such as 90s or 10m")
      ->type_name("TIME")
      ->check(check_time_span)
      ->capture_default_str();
  verb->footer(
      "Exit status of a wait for programs: that of the last program; 128+N if signal N ended it;\n"
      "125 if carve fails.\n\n"
      "  carve wait train\n"
      "  carve wait --for=condition=Ready service/demo --timeout 60s\n"
      "  carve wait --for=delete service/demo\n"
      "  carve wait --for=jsonpath='{.status.phase}'=Succeeded job/custom-5");
  verb->callback([&context, options] {
    if (names_objects(*options)) return wait_for_objects(context, *options);
    context.problem_status = runner::failed_status;
    for (const std::string& name : options->words) wait_for_program(context, name);
  });
}

}  // namespace carve::cli
