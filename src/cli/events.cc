// `carve events`: prints the agent's event log, oldest event first; with --for or --objects, what happened to
// objects of the controller.
#include "cli/event_watch.h"
#include "cli/services.h"
#include "cli/verbs.h"
#include "wire/api/event.h"
#include "wire/objects/object_event.h"

namespace carve::cli {
namespace {

struct EventOptions {
  std::string object;  // "service/a"; empty: the agent's events, or those of all objects.
  std::string name_space = "default";
  bool all_objects = false, watch = false;
};

void print(const objects::ObjectEventList& list, bool with_object) {
  std::vector<std::string> heading = {"LAST", "FIRST", "COUNT", "TYPE", "REASON"};
  if (with_object) heading.emplace_back("OBJECT");
  heading.emplace_back("MESSAGE");
  std::vector<std::vector<std::string>> rows;
  for (const objects::ObjectEvent& e : list.items) {
    rows.push_back(
        {e.last_at, e.first_at, fmt::format("{}", e.count), harmless(e.type), std::string(text(e.reason))});
    if (with_object) {
      const auto kind = objects::parse_kind(e.kind);
      rows.back().push_back(
          harmless(fmt::format("{}/{}", kind ? objects::text_of(*kind).singular : e.kind, e.name)));
    }
    rows.back().push_back(harmless(e.message));
  }
  fmt::print("{}", table(heading, rows));
}

void show_events(Context& context, const std::string& target, bool with_object) {
  const client::Client controller = context.controller();
  if (context.json())
    return answered(context, controller.text(target),
                    [](const auto& json) { fmt::print("{}\n", api::indented(json)); });
  answered(context, controller.get<objects::ObjectEventList>(target),
           [&](const auto& list) { print(list, with_object); });
}

void show_agent_events(Context& context) {
  answered(context, context.client().get<api::EventList>("/v1/events"), [&](const auto& list) {
    if (context.json()) return print_json(list);
    for (const api::Event& e : list.events) fmt::print("{}\n", line_of(e));
  });
}

void run(Context& context, const EventOptions& options) {
  if (options.watch) return watch_events(context);
  if (options.all_objects) return show_events(context, "/v1/events?limit=500", true);
  if (options.object.empty()) return show_agent_events(context);
  if (const auto object = required_object(context, {options.object}, options.name_space))
    show_events(context, object_path(*object, "events"), false);
}

}  // namespace

void add_events(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand(
      "events", "List the events of slices, devices and the agent, or of the controller's objects");
  auto options = std::make_shared<EventOptions>();
  CLI::Option* object = verb->add_option("--for", options->object,
                                         "What happened to one object: KIND/NAME, also a deleted one");
  verb->add_option("-n,--namespace", options->name_space, "The object's namespace")
      ->needs(object)
      ->capture_default_str();
  CLI::Option* all = verb->add_flag("--objects", options->all_objects, "The newest 500 events of all objects")
                         ->excludes(object);
  verb->add_flag("-w,--watch", options->watch,
                 "Also each new event of the agent, until Ctrl-C; with -o json one document a line")
      ->excludes(object)
      ->excludes(all);
  add_output(verb, context);
  verb->footer("  carve events --watch\n  carve events --for service/demo");
  verb->callback([&context, options] { run(context, *options); });
}

}  // namespace carve::cli
