// `carve wait`: waits for the ends of detached programs and prints their exit statuses, or, with --for, for states
// of objects (object_wait.h).
#include <chrono>
#include <optional>
#include <thread>

#include "cli/detached_programs.h"
#include "cli/object_wait.h"
#include "cli/services.h"
#include "cli/time_span.h"
#include "cli/verbs.h"
#include "cli/wait_goal.h"
#include "runner/runner.h"

namespace carve::cli {
namespace {

using Clock = std::chrono::steady_clock;

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

// Waits until the program has ended and prints its exit status. `timeout` is how long `deadline` was away.
void wait_for_program(Context& context, const std::string& name, std::optional<Clock::time_point> deadline,
                      const std::string& timeout) {
  const auto program = required_program(context, name);
  if (!program) return;
  for (;;) {
    const auto seen = runner::read_program(program->directory);
    if (seen && seen->phase() == runner::ProgramPhase::running) {
      if (deadline && Clock::now() >= *deadline) {
        complain({.detail = fmt::format("the program of slice {} is still running after {}", harmless(name),
                                        timeout)});
        context.status = context.problem_status;
        return;
      }
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

constexpr std::string_view slice_prefix = "slice/";

// Returns whether the words name objects of the controller, as in "service/a".
bool names_objects(const ObjectWaitOptions& options) {
  const std::string& first = options.words.front();
  return !options.goal.empty() || (first.find('/') != std::string::npos && !first.starts_with(slice_prefix));
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
                   "Ready, Complete and Failed follow from the phase")
      ->type_name("STATE")
      ->check([](const std::string& text) {
        const auto goal = parse_wait_goal(text);
        return goal ? std::string() : goal.error();
      });
  verb->add_option("-n,--namespace", options->name_space, "Namespace of the objects")->capture_default_str();
  const CLI::Option* const timeout =
      verb->add_option(
              "--timeout", options->timeout,
              "Maximum wait for all of them, such as 90s or 10m; programs are waited for without a limit "
              "by default")
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
  verb->callback([&context, options, timeout] {
    if (names_objects(*options)) return wait_for_objects(context, *options);
    context.problem_status = runner::failed_status;
    std::optional<Clock::time_point> deadline;
    if (timeout->count() > 0) deadline = Clock::now() + std::chrono::seconds(seconds_of(options->timeout));
    for (const std::string& word : options->words)
      wait_for_program(context, word.starts_with(slice_prefix) ? word.substr(slice_prefix.size()) : word,
                       deadline, options->timeout);
  });
}

}  // namespace carve::cli
