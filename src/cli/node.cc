// `carve node`: prints the settings of this node's devices; `carve node set` changes them.
#include "wire/api/node.h"
#include "cli/messages.h"
#include "cli/node_pools.h"
#include "cli/slice_options.h"
#include "cli/verbs.h"
#include "core/label.h"

namespace carve::cli {
namespace {

void print(const api::Node& node) {
  const auto row = [](const char* name, const std::string& value) { fmt::print("{:<12} {}\n", name, value); };
  row("policy", node.policy.effective ? std::string(text(*node.policy.effective)) : "mixed");
  if (node.policy.desired != node.policy.effective) {
    row("desired", std::string(text(node.policy.desired)));
    row("blocked by", fmt::format("{}", fmt::join(node.policy.blocked_by, ", ")));
  }
  if (node.policy_per_slice) row("", "slices of one device may follow different policies");
  row("best effort", node.admit_best_effort ? "admitted; runs when slices with a share are idle"
                                            : "refused on devices where shares are enforced");
  row("over 100%",
      node.overcommit_compute ? "admitted, and the device is shown as over-committed" : "refused");
  row("memory unit", std::string(text(size_of(node.memory_unit))));
  if (node.desired_memory_unit != node.memory_unit)
    row("", fmt::format("changes to {} when these slices have ended: {}",
                        std::string(text(size_of(node.desired_memory_unit))),
                        fmt::join(node.memory_unit_blocked_by, ", ")));
  row("spill",
      fmt::format("{} of host memory, {} granted, {} free", text(Bytes{node.spill_limit_bytes}).c_str(),
                  text(Bytes{node.spill_granted_bytes}).c_str(), text(Bytes{node.spill_free_bytes}).c_str()));
  row("enforcement", enforcement_text(node.enforcement));
  if (!node.grants_refused.empty()) row("refuses", harmless(node.grants_refused));
  for (const auto& [key, value] : node.labels)
    row("label", fmt::format("{}={}", harmless(key), harmless(value)));
}

}  // namespace

void add_node(CLI::App& app, Context& context) {
  CLI::App* verb =
      app.add_subcommand("node", "Show this node's compute policy and labels; carve node set changes them");
  add_output(verb, context);
  CLI::App* set = verb->add_subcommand("set", "Change the node's compute policy and labels");
  auto policy = std::make_shared<std::string>();
  auto labels = std::make_shared<std::vector<std::string>>();
  set->add_option("--policy", *policy,
                  "Compute policy of each device, effective when its current slices have ended")
      ->check(CLI::IsMember(words_of<Policy>()));
  set->add_option("--label", *labels, "Label to set (KEY=VALUE) or to remove (KEY-); repeatable")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE")
      ->check([](const std::string& word) {
        const auto change = parse_label_change(word);
        return change ? std::string() : change.error().message;
      });
  auto unit = std::make_shared<std::string>();
  auto when_free = std::make_shared<bool>(false);
  set->add_option("--memory-unit", *unit,
                  "Unit of memory requests that are plain numbers, such as carve run --gpu-mem 16")
      ->check(CLI::IsMember(words_of<MemoryUnit>()));
  set->add_flag("--when-free", *when_free, "Change the memory unit once no slice with memory units is left");
  set->require_option(1, 0);
  add_node_verbs(verb, context);
  const auto shown = [&context](const client::Answer<api::Node>& answer) {
    answered(context, answer, [&](const auto& node) {
      if (context.json())
        print_json(node);
      else
        print(node);
    });
  };
  verb->footer(
      "A device changes its policy when its last slice has ended; running slices keep their policy.\n"
      "  carve node set --policy guaranteed-burst-share\n"
      "  carve node set --label zone=a --label rack-");
  set->callback([&context, policy, labels, unit, when_free, shown] {
    api::NodeChange change{.policy = parse<Policy>(*policy),
                           .memory_unit = parse<MemoryUnit>(*unit),
                           .when_free = *when_free,
                           .refuse_grants = {},
                           .labels = {},
                           .removed_labels = {}};
    for (const std::string& word : *labels) {
      const auto label = *parse_label_change(word);
      if (label.second && meaning_of(label.first) == LabelMeaning::placement) {
        fmt::print(stderr,
                   "carve: --label {0}: the controller reads this label from its node object; set it with "
                   "carve label node NAME {0}, or without a controller start carved with --strategy NAME\n",
                   word);
        context.status = failed_status;
        return;
      }
      if (label.second)
        change.labels[label.first] = *label.second;
      else
        change.removed_labels.push_back(label.first);
    }
    shown(context.agent().change_node(change));
  });
  verb->callback([&context, verb, shown] {
    if (verb->get_subcommands().empty()) shown(context.agent().node());
  });
}

}  // namespace carve::cli
