// `carve stop NAME...`: ends all processes of a slice, then the slice.
#include "cli/verbs.h"
#include "wire/api/slice.h"

namespace carve::cli {

void stop_slice(Context& context, const std::string& name) {
  answered(context, context.client().remove<api::Slice>("/v1/slices/" + name),
           [&](const auto&) { fmt::print("{}\n", name); });
}

void add_stop(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("stop", "End every process of a slice, then the slice");
  auto names = std::make_shared<std::vector<std::string>>();
  verb->add_option("NAME", *names, "The slices")->required();
  verb->callback([&context, names] {
    for (const std::string& name : *names) stop_slice(context, name);
  });
}

}  // namespace carve::cli
