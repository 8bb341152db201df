// `carve set NAME`: changes the terms of a running slice. The new terms apply to its running processes
// immediately.
#include "base/bytes.h"
#include "base/share.h"
#include "cli/messages.h"
#include "cli/services.h"
#include "cli/slice_options.h"
#include "cli/time_span.h"
#include "cli/verbs.h"
#include "wire/api/slice.h"

namespace carve::cli {
namespace {

void print_changed(const api::Slice& slice) {
  const std::string share = shares_text(slice);
  fmt::print("{}: {}, {}, {}{}\n", slice.name, quotas_text(slice), share == "-" ? "no share" : share,
             text(slice.policy), slice.latency_class == LatencyClass::latency ? ", latency class" : "");
  const Enforcement& compute = slice.enforcement.compute;
  if (slice.isolation == Isolation::memory_and_compute && !compute.enforced())
    fmt::print("its share is {}\n", message(compute));
}

// The new time limit of a slice. An empty time means no change.
struct TimeOptions {
  std::string time, grace = "30s";
};

// Returns whether the time limit was changed as the options request.
bool change_time(Context& context, const client::AgentClient& agent, const std::string& slice,
                 const TimeOptions& options) {
  if (options.time.empty()) return true;
  const auto limited = agent.limit_time(
      slice, {.seconds = seconds_of(options.time), .grace_seconds = seconds_of(options.grace)});
  answered(context, limited, [&](const api::TimeLimit& limit) {
    if (context.json()) return;
    fmt::print("{}: {}\n", slice,
               limit.seconds == 0 ? "no time limit" : fmt::format("time limit in {}", options.time));
  });
  return limited.has_value();
}

}  // namespace

void add_set(CLI::App& app, Context& context) {
  CLI::App* verb =
      app.add_subcommand("set", "Change a running slice: its memory, share, policy, class or time limit");
  auto name = std::make_shared<std::string>();
  auto options = std::make_shared<ChangeOptions>();
  auto times = std::make_shared<TimeOptions>();
  auto force = std::make_shared<bool>(false);
  verb->add_option("NAME", *name, "The slice")->required();
  add_change_options(verb, *options);
  verb->add_option("--time", times->time, "New time limit from now on, such as 2h; 0 removes the limit")
      ->type_name("TIME")
      ->check(check_time_span);
  verb->add_option("--stop-timeout", times->grace, "Grace time of --time between SIGTERM and SIGKILL")
      ->type_name("TIME")
      ->check(check_time_span)
      ->capture_default_str();
  verb->add_flag("--force", *force,
                 "Change the slice even if it belongs to a service or a job, whose document is not changed");
  add_output(verb, context);
  verb->footer(
      "Memory can grow if the device has enough free, and cannot shrink below the bytes in\n"
      "use. Either all changes are made or none.\n"
      "  carve set nightly --compute 40%\n"
      "  carve set nightly --memory 6GiB --latency\n"
      "  carve set nightly --time 2h");
  verb->callback([&context, name, options, times, force] {
    const client::AgentClient agent = context.agent();
    if (*options == ChangeOptions() && !times->time.empty())
      return (void)change_time(context, agent, *name, *times);
    const auto change = to_change(*options);
    if (!change) {
      context.refuse(change.error());
      return;
    }
    const auto present = agent.slice(*name);
    if (const std::string problem = present ? workload_problem(*present) : ""; !problem.empty() && !*force) {
      fmt::print(stderr, "carve: {}\n", problem);
      context.status = failed_status;
      return;
    }
    if (!change_time(context, agent, *name, *times)) return;
    answered(context, agent.change(*name, *change),
             [&](const auto& slice) { context.json() ? print_json(slice) : print_changed(slice); });
  });
}

}  // namespace carve::cli
