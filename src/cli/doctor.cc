// `carve doctor`: prints each prerequisite as ok, degraded or failed, with the reason and the fix. The agent
// checks the node and itself; this program checks whether the user can reach the agent and the controller.
#include "wire/api/doctor.h"
#include "cli/coverage.h"
#include "cli/verbs.h"
#include "wire/api/controller.h"
#include "wire/api/node.h"

namespace carve::cli {
namespace {

api::Check reachable(const client::AgentClient& agent, const client::Answer<api::Version>& version) {
  if (!version)
    return {
        .name = "agent", .status = CheckStatus::failed, .detail = version.error().detail, .fix = "carved &"};
  return {.name = "agent",
          .status = CheckStatus::ok,
          .detail = fmt::format("version {} is reachable at {}, pid {}", version->version, agent.socket(),
                                version->pid)};
}

// Services and jobs need the controller; slices do not.
api::Check controller_reachable(const client::Client& controller) {
  const auto version = controller.get<api::ControllerVersion>("/v1/version");
  if (!version)
    return {.name = "controller",
            .status = CheckStatus::degraded,
            .detail = version.error().detail + "; slices work without it, but services and jobs do not",
            .fix = "run carve up, or set its socket with --controller"};
  return {.name = "controller",
          .status = CheckStatus::ok,
          .detail = fmt::format("version {} is reachable at {}", version->version, controller.socket()),
          .fix = ""};
}

void print(const Screen& screen, const api::Diagnosis& diagnosis) {
  size_t width = 0;
  for (const api::Check& c : diagnosis.checks) width = std::max(width, c.name.size());
  for (const api::Check& c : diagnosis.checks) {
    const Ink ink = c.status == CheckStatus::ok       ? Ink::green
                    : c.status == CheckStatus::failed ? Ink::red
                                                      : Ink::yellow;
    fmt::print("{}  {}  {}\n", inked(screen, ink, padded(text(c.status), 8)), padded(c.name, width),
               c.detail);
    if (!c.fix.empty()) fmt::print("{}  fix: {}\n", std::string(width + 10, ' '), c.fix);
  }
  fmt::print("\nIn force: memory: {}, compute: {}\n", text(diagnosis.memory), text(diagnosis.compute));
}

}  // namespace

void add_doctor(CLI::App& app, Context& context) {
  CLI::App* verb =
      app.add_subcommand("doctor", "Check every prerequisite and print how to fix what is missing");
  add_output(verb, context);
  verb->footer("The exit status is 1 if a prerequisite for slices is missing.");
  verb->callback([&context] {
    const client::AgentClient agent = context.agent();
    const auto version = agent.version();
    api::Diagnosis all;
    all.checks.push_back(reachable(agent, version));
    all.checks.push_back(controller_reachable(context.controller()));
    if (version) {
      answered(context, agent.doctor(), [&](const api::Diagnosis& from_agent) {
        all.memory = from_agent.memory;
        all.compute = from_agent.compute;
        all.checks.insert(all.checks.end(), from_agent.checks.begin(), from_agent.checks.end());
      });
    }
    all.checks.push_back(coverage_check(version && !version->simulated.empty()));
    for (const api::Check& c : all.checks)
      if (c.status == CheckStatus::failed) context.status = failed_status;
    if (context.json())
      print_json(all);
    else
      print(context.screen, all);
  });
}

}  // namespace carve::cli
