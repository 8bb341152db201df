// `carve events`: prints the agent's event log, oldest event first; with --for or --objects, the events of
// one slice or of the controller's objects. A name refers to the current object with the name, or to the
// last one.
#include <utility>

#include "cli/event_watch.h"
#include "cli/services.h"
#include "cli/slice_events.h"
#include "cli/verbs.h"
#include "objects/object_event.h"
#include "wire/api/event.h"

namespace carve::cli {
namespace {

struct EventOptions {
  std::string object;  // "service/a", "slice/b"; empty for the agent's events or those of all objects.
  std::string name_space = "default";
  bool all_objects = false, all_lives = false, watch = false;
};

// Determines the columns that distinguish the objects of a list.
enum class Subjects : uint8_t { one_object, all_lives, all_objects };

void print(const objects::ObjectEventList& list, Subjects subjects) {
  std::vector<std::string> heading = {"LAST", "FIRST", "COUNT", "TYPE", "REASON"};
  const bool with_object = subjects == Subjects::all_objects;
  if (with_object) heading.emplace_back("OBJECT");
  if (subjects == Subjects::all_lives) heading.emplace_back("UID");
  heading.emplace_back("BY");
  heading.emplace_back("MESSAGE");
  std::vector<std::vector<std::string>> rows;
  for (const objects::ObjectEvent& e : list.items) {
    rows.push_back({e.last_at, e.first_at, fmt::format("{}", e.count), harmless(text(e.type)),
                    std::string(text(e.reason))});
    if (with_object) {
      const auto kind = objects::parse_kind(e.kind);
      rows.back().push_back(
          harmless(fmt::format("{}/{}", kind ? objects::text_of(*kind).singular : e.kind, e.name)));
    }
    if (subjects == Subjects::all_lives) rows.back().push_back(e.uid.empty() ? "-" : harmless(e.uid));
    rows.back().push_back(e.caller.empty() ? "-" : harmless(e.caller));
    rows.back().push_back(harmless(e.message));
  }
  fmt::print("{}", table(heading, rows));
}

void show_events(Context& context, const std::string& target, Subjects subjects) {
  const client::Client controller = context.controller();
  if (context.json())
    return answered(context, controller.text(target),
                    [](const auto& json) { fmt::print("{}\n", api::indented(json)); });
  answered(context, controller.get<objects::ObjectEventList>(target),
           [&](const auto& list) { print(list, subjects); });
}

void show_slice_events(Context& context, const std::string& name, bool all_lives) {
  answered(context, context.agent().events(), [&](const auto& all) {
    const api::EventList list{.events = events_of_slice(all.events, name, all_lives)};
    if (list.events.empty()) {
      complain({.title = "not-found",
                .detail = fmt::format(
                    "slice '{}' has no events; the agent keeps only the newest 1,000 events since it started",
                    name)});
      context.status = failed_status;
      return;
    }
    if (context.json()) return print_json(list);
    uint64_t id = 0;
    for (const api::Event& e : list.events) {
      if (all_lives && e.slice_id != std::exchange(id, e.slice_id))
        fmt::print("slice {} with usage record {}\n", harmless(e.slice), e.slice_id);
      fmt::print("{}\n", line_of(e));
    }
  });
}

void show_agent_events(Context& context) {
  answered(context, context.agent().events(), [&](const auto& list) {
    if (context.json()) return print_json(list);
    for (const api::Event& e : list.events) fmt::print("{}\n", line_of(e));
  });
}

void run(Context& context, const EventOptions& options) {
  if (options.watch) return watch_events(context);
  if (options.all_objects) return show_events(context, "/v1/events?limit=500", Subjects::all_objects);
  if (options.object.empty()) return show_agent_events(context);
  if (const auto slice = slice_named({options.object}); slice && !slice->empty())
    return show_slice_events(context, *slice, options.all_lives);
  if (options.object.find('/') == std::string::npos) {
    fmt::print(stderr, "carve: --for '{0}': use KIND/NAME, for example slice/{0} or service/{0}\n",
               harmless(options.object));
    context.status = usage_status;
    return;
  }
  if (const auto object = required_object(context, {options.object}, options.name_space))
    show_events(context, object_path(*object, "events", options.all_lives ? "lives=all" : ""),
                options.all_lives ? Subjects::all_lives : Subjects::one_object);
}

}  // namespace

void add_events(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand(
      "events", "List the events of slices, devices and the agent, or of the controller's objects");
  auto options = std::make_shared<EventOptions>();
  CLI::Option* object = verb->add_option(
      "--for", options->object,
      "Only events of this slice or object, KIND/NAME; if it is gone, of the last one with this name");
  verb->add_option("-n,--namespace", options->name_space, "The object's namespace")
      ->needs(object)
      ->capture_default_str();
  verb->add_flag("--all-lives", options->all_lives,
                 "Also print events of earlier slices or objects that had this name")
      ->needs(object);
  CLI::Option* all =
      verb->add_flag("--objects", options->all_objects, "Print the newest 500 events of all objects")
          ->excludes(object);
  verb->add_flag("-w,--watch", options->watch,
                 "Also print each new event of the agent, until Ctrl-C; with -o json, one document per line")
      ->excludes(object)
      ->excludes(all);
  add_output(verb, context);
  verb->footer("  carve events --watch\n  carve events --for slice/demo\n  carve events --for service/demo");
  verb->callback([&context, options] { run(context, *options); });
}

}  // namespace carve::cli
