// `carve thaw NAME...`: resumes slices that the audit has frozen.
#include "cli/verbs.h"
#include "wire/api/problem.h"
#include "wire/api/slice.h"

namespace carve::cli {

void add_thaw(CLI::App& app, Context& context) {
  CLI::App* verb =
      app.add_subcommand("thaw", "Resume slices that the audit has frozen (carved --audit freeze)");
  auto names = std::make_shared<std::vector<std::string>>();
  verb->add_option("NAME", *names, "The slices")->required();
  verb->callback([&context, names] {
    const client::AgentClient agent = context.agent();
    for (const std::string& name : *names)
      answered(context, agent.thaw(name), [&](const auto&) { fmt::print("{}\n", name); });
  });
}

}  // namespace carve::cli
