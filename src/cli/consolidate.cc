// `carve consolidate`: which slices would have to move so that devices stand empty. A plan; nobody is moved.
#include "base/bytes.h"
#include "base/share.h"
#include "cli/verbs.h"

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
  fmt::print("device{} {} would stand empty after {} move{} of {} in all",
             plan.emptied.size() == 1 ? "" : "s", fmt::join(plan.emptied, ", "), plan.moves.size(),
             plan.moves.size() == 1 ? "" : "s", text(Bytes{plan.moved_bytes}).c_str());
  if (plan.emptied.size() < plan.wanted) fmt::print("; no plan was found for {}", plan.wanted);
  fmt::print(". Nobody is moved.\n");
}

}  // namespace

void add_consolidate(CLI::App& app, Context& context) {
  CLI::App* verb =
      app.add_subcommand("consolidate", "Say which slices would have to move so that devices stand empty");
  auto devices = std::make_shared<unsigned>(1);
  verb->add_option("--devices", *devices, "How many more devices shall stand empty")
      ->type_name("K")
      ->check(CLI::Range(1, 16))
      ->capture_default_str();
  add_output(verb, context);
  verb->footer(
      "A plan of few moves, in an order in which each has room; nobody is moved. A slice of several devices\n"
      "has a row for each that it leaves; whole devices stay. Exit status 0 where so many can be emptied, 1\n"
      "where fewer.\n"
      "  carve consolidate --devices 2");
  verb->callback([&context, devices] {
    answered(
        context,
        context.client().get<api::ConsolidationPlan>(fmt::format("/v1/consolidation?devices={}", *devices)),
        [&](const auto& plan) {
          context.status = plan.emptied.size() < plan.wanted ? failed_status : 0;
          if (context.json())
            print_json(plan);
          else
            print(plan);
        });
  });
}

}  // namespace carve::cli
