// `carve events`: prints the event log, oldest event first.
#include "cli/verbs.h"
#include "wire/api/event.h"

namespace carve::cli {

void add_events(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("events", "List the events of slices, devices and the agent");
  add_output(verb, context);
  verb->callback([&context] {
    answered(context, context.client().get<api::EventList>("/v1/events"), [&](const auto& list) {
      if (context.json()) return print_json(list);
      for (const api::Event& e : list.events)
        fmt::print("{}  {}{}\n", clock_text(e.time_ns), e.slice.empty() ? "" : e.slice + ": ",
                   harmless(e.text));
    });
  });
}

}  // namespace carve::cli
