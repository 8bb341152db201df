// `carve node`: what this machine wants of all its devices; `carve node set` changes it.
#include "cli/request.h"
#include "cli/verbs.h"

namespace carve::cli {
namespace {

void print(const api::Node& node) {
  const auto row = [](const char* name, const std::string& value) { fmt::print("{:<12} {}\n", name, value); };
  row("policy", node.policy.effective);
  if (node.policy.desired != node.policy.effective) {
    row("desired", node.policy.desired);
    row("blocked by", node.policy.blocked_by);
  }
  if (node.policy_per_slice) row("", "slices of one device may follow different policies");
  row("no share", node.admit_best_effort ? "admitted beside enforced shares, ranked last"
                                         : "refused on devices where shares are enforced");
  row("over 100%",
      node.overcommit_compute ? "admitted, and the device is labelled over-committed" : "refused");
  for (const auto& [key, value] : node.labels)
    row("label", fmt::format("{}={}", harmless(key), harmless(value)));
}

}  // namespace

void add_node(CLI::App& app, Context& context) {
  CLI::App* verb =
      app.add_subcommand("node", "Show this machine's compute policy; change it with: carve node set");
  add_output(verb, context);
  CLI::App* set = verb->add_subcommand("set", "Change it");
  auto policy = std::make_shared<std::string>();
  set->add_option("--policy", *policy,
                  "How compute is shared on each device, once its present slices have ended")
      ->required()
      ->check(CLI::IsMember(policy_words));
  const auto shown = [&context](const Answer<api::Node>& answer) {
    answered(context, answer, [&](const auto& node) {
      if (context.json())
        print_json(node);
      else
        print(node);
    });
  };
  verb->footer(
      "A device changes over when its last slice has ended; who runs on it keeps what it has.\n"
      "  carve node set --policy guaranteed-burst-share");
  set->callback([&context, policy, shown] {
    shown(context.client().patch<api::Node>("/v1/node", api::NodeChange{.policy = *policy}));
  });
  verb->callback([&context, set, shown] {
    if (!set->parsed()) shown(context.client().get<api::Node>("/v1/node"));
  });
}

}  // namespace carve::cli
