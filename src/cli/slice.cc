// `carve slice create|rm|ls`: creates and removes slices that containers will use.
#include "wire/api/slice.h"
#include "cli/slice_options.h"
#include "cli/verbs.h"

namespace carve::cli {

void add_slice(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("slice", "Create and remove slices for containers");
  verb->require_subcommand(1);

  CLI::App* create =
      verb->add_subcommand("create", "Create a slice and announce it to container engines (CDI)");
  auto options = std::make_shared<SliceOptions>();
  add_slice_options(create, *options);
  create->add_option("--name", options->name, "The slice's name, which is also the container device's name")
      ->required();
  add_output(create, context);
  create->footer(
      "  carve slice create --memory 2GiB --name a\n"
      "  podman run --device carve.dev/slice=a IMAGE");
  create->callback([&context, options] {
    auto request = to_request(*options);
    if (!request) {
      context.refuse(request.error());
      return;
    }
    request->lifetime = Lifetime::until_deleted;
    answered(context, context.agent().grant(*request), [&](const auto& slice) {
      if (context.json())
        print_json(slice);
      else
        fmt::print("{}\n", slice.name);
      if (context.screen.terminal && !context.json())
        fmt::print(stderr, "To use it: podman run --device carve.dev/slice={} IMAGE\n", slice.name);
    });
  });

  CLI::App* remove = verb->add_subcommand("rm", "End all processes of a slice and delete it");
  auto names = std::make_shared<std::vector<std::string>>();
  remove->add_option("NAME", *names, "The slices")->required();
  remove->callback([&context, names] {
    const client::AgentClient agent = context.agent();
    for (const std::string& name : *names)
      answered(context, agent.end(name), [&](const auto&) { fmt::print("{}\n", name); });
  });
}

}  // namespace carve::cli
