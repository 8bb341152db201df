// `carve version`: prints the versions of this program and of the agent.
#include "cli/verbs.h"
#include "wire/api/node.h"

namespace carve::cli {

void add_version(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("version", "Print the versions of carve and of the agent");
  add_output(verb, context);
  verb->callback([&context] {
    const auto agent = context.agent().version();
    if (context.json()) return answered(context, agent, [](const auto& v) { print_json(v); });
    fmt::print("carve {}\n", CARVE_VERSION);
    answered(context, agent, [](const auto& v) {
      fmt::print("agent {}, pid {}, {}, up {}\n", v.version, v.pid,
                 v.simulated.empty() ? "real devices" : "simulated devices (" + v.simulated + ")",
                 age(utc_now_ns() - std::min(utc_now_ns(), v.started_ns)));
    });
  });
  app.set_version_flag("--version", std::string("carve ") + CARVE_VERSION);
}

}  // namespace carve::cli
