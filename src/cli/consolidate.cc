// `carve consolidate`: prints which slices would have to move to empty devices. It moves no slice.
#include "base/bytes.h"
#include "base/share.h"
#include "cli/verbs.h"
#include "wire/api/plan.h"

namespace carve::cli {
namespace {

void print(const api::ConsolidationPlan& plan) {
  std::vector<std::vector<std::string>> rows;
  for (const api::ConsolidationMove& m : plan.moves)
    rows.push_back({m.slice, std::to_string(m.from), std::to_string(m.to),
                    std::string(text(Bytes{m.memory_bytes})),
                    m.share_bp == 0 ? "-" : text(Share{m.share_bp}).c_str()});
  if (!rows.empty()) fmt::print("{}\n", table({"SLICE", "FROM", "TO", "MEMORY", "COMPUTE"}, rows));
  if (plan.emptied.empty()) {
    fmt::print("no device can be emptied by moving slices\n");
    return;
  }
  fmt::print("device{} {} would be empty after {} move{} of {} in all", plan.emptied.size() == 1 ? "" : "s",
             fmt::join(plan.emptied, ", "), plan.moves.size(), plan.moves.size() == 1 ? "" : "s",
             text(Bytes{plan.moved_bytes}).c_str());
  if (plan.emptied.size() < plan.wanted) fmt::print("; no plan was found for {} devices", plan.wanted);
  fmt::print(". No slice was moved.\n");
}

}  // namespace

void add_consolidate(CLI::App& app, Context& context) {
  CLI::App* verb =
      app.add_subcommand("consolidate", "Print which slices would have to move to empty devices");
  auto devices = std::make_shared<unsigned>(1);
  verb->add_option("--devices", *devices, "Number of additional devices to empty, 1 to 16")
      ->type_name("K")
      ->check(CLI::Range(1, 16))
      ->capture_default_str();
  add_output(verb, context);
  verb->footer(
      "Prints a plan with few moves, in an order in which each move fits. No slice is moved. A slice of\n"
      "several devices has a row for each device that it leaves. Exclusive slices are not moved. The\n"
      "exit status is 0 if K devices can be emptied, 1 if fewer.\n"
      "  carve consolidate --devices 2");
  verb->callback([&context, devices] {
    answered(context, context.agent().consolidation(*devices), [&](const auto& plan) {
      context.status = plan.emptied.size() < plan.wanted ? failed_status : 0;
      if (context.json())
        print_json(plan);
      else
        print(plan);
    });
  });
}

}  // namespace carve::cli
