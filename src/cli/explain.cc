// `carve explain`: prints where a request would be placed, or each device's reason against it. Grants
// nothing.
#include "cli/pools.h"
#include "cli/slice_options.h"
#include "cli/verbs.h"
#include "wire/api/plan.h"

namespace carve::cli {

void add_explain(CLI::App& app, Context& context) {
  CLI::App* verb =
      app.add_subcommand("explain", "Print where a request would be placed, or why no device fits");
  auto options = std::make_shared<SliceOptions>();
  add_slice_options(verb, *options);
  add_output(verb, context);
  verb->footer("Exit status 0 if the request fits, 1 if not.\n  carve explain --memory 24GiB");
  add_explain_slicing(verb, context);
  verb->callback([&context, verb, options] {
    if (!verb->get_subcommands().empty()) return;
    auto request = to_request(*options);
    if (!request) {
      fmt::print(stderr, "carve: {}\n", request.error());
      context.status = usage_status;
      return;
    }
    answered(context, context.client().post<api::Explanation>("/v1/explain", *request),
             [&](const auto& explanation) {
               context.status = explanation.fits ? 0 : failed_status;
               if (context.json()) return print_json(explanation);
               fmt::print("{}\n", explanation.sentence);
               for (const api::Verdict& v : explanation.devices)
                 fmt::print("  device {}: {}\n", v.index,
                            inked(context.screen, v.fits ? Ink::green : Ink::red, v.sentence));
             });
  });
}

}  // namespace carve::cli
