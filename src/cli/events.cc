// `carve events`: prints the event log, oldest event first.
#include "cli/event_watch.h"
#include "cli/verbs.h"
#include "wire/api/event.h"

namespace carve::cli {

void add_events(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("events", "List the events of slices, devices and the agent");
  auto watch = std::make_shared<bool>(false);
  verb->add_flag("-w,--watch", *watch, "Also each new event, until Ctrl-C; with -o json one document a line");
  add_output(verb, context);
  verb->footer("  carve events --watch");
  verb->callback([&context, watch] {
    if (*watch) return watch_events(context);
    answered(context, context.client().get<api::EventList>("/v1/events"), [&](const auto& list) {
      if (context.json()) return print_json(list);
      for (const api::Event& e : list.events) fmt::print("{}\n", line_of(e));
    });
  });
}

}  // namespace carve::cli
