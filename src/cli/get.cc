// `carve get KIND [NAME...]` and `carve describe KIND NAME`.
#include <algorithm>

#include "cli/bill.h"
#include "cli/jobs.h"
#include "cli/node_pools.h"
#include "cli/object_columns.h"
#include "cli/object_output.h"
#include "cli/object_watch.h"
#include "cli/output_format.h"
#include "cli/services.h"
#include "cli/verbs.h"
#include "wire/api/json_value.h"
#include "wire/api/percent.h"

namespace carve::cli {
namespace {

struct GetOptions {
  std::vector<std::string> words;
  std::string name_space, selector;
  OutputOptions output;
  bool all_namespaces = false, watch = false;
};

using api::Json;

// The objects of one kind, in the order in which they are printed.
struct Found {
  objects::Kind kind = objects::Kind::service;
  Json items = Json::array();
};

std::string list_target(objects::Kind kind, const GetOptions& options) {
  std::string target = list_path(kind) + "?labelSelector=" + api::percent_encoded(options.selector);
  if (has_namespaces(kind)) target += "&namespace=" + api::percent_encoded(options.name_space);
  return target;
}

// Returns the document of one argument: an object, or the list of a kind. Prints why there is none.
std::optional<Json> fetched(Context& context, const ObjectName& object, const GetOptions& options) {
  const client::Client controller = context.controller();
  const auto text = object.name.empty() ? whole_list(controller, list_target(object.kind, options))
                                        : controller.text(object_path(object));
  std::optional<Json> out;
  answered(context, text, [&](const std::string& json) {
    auto parsed = api::parse(json);
    if (parsed) {
      out = std::move(*parsed);
      return;
    }
    complain({.title = "list", .detail = "cannot read the controller's response: " + parsed.error()});
    context.status = failed_status;
  });
  return out;
}

bool is_in_another_namespace(const Json& object) {
  return object.value("/metadata/namespace"_json_pointer, std::string("default")) != "default";
}

// Prints the table of a kind. With several kinds, each name is preceded by its kind, as in kubectl.
void print_table(Context& context, const Found& found, const OutputOptions& output, bool has_prefix) {
  const bool wide = parse_output_format(output.format)->kind == OutputFormat::Kind::wide;
  const bool has_column =
      has_namespaces(found.kind) && (wide || std::ranges::any_of(found.items, is_in_another_namespace));
  const NamespaceColumn column = has_column ? NamespaceColumn::shown : NamespaceColumn::hidden;
  const uint64_t now_ns = utc_now_ns();
  std::vector<std::vector<std::string>> rows;
  for (const Json& object : found.items) {
    auto cells = object_cells(found.kind, object.dump(), column, wide, now_ns);
    if (!cells) {
      complain({.title = "list", .detail = "cannot read the controller's response: " + cells.error()});
      context.status = failed_status;
      return;
    }
    if (has_prefix)
      cells->front() = fmt::format("{}/{}", objects::text_of(found.kind).singular, cells->front());
    rows.push_back(std::move(*cells));
  }
  fmt::print("{}", listed(output, object_heading(found.kind, column, wide), rows));
}

// Returns the object's name in the form KIND/NAME. `kind` is used for objects whose document has no kind.
std::string name_of_object(const Json& object, objects::Kind fallback) {
  const auto kind = objects::parse_kind(object.value("kind", ""));
  return fmt::format("{}/{}", objects::text_of(kind.value_or(fallback)).singular,
                     object.value("/metadata/name"_json_pointer, std::string()));
}

void print_nothing(const std::vector<ObjectName>& wanted) {
  const bool is_one_kind = wanted.size() == 1;
  const objects::KindText& kind = objects::text_of(wanted.front().kind);
  fmt::print(stderr, "No {}. {}\n", is_one_kind ? kind.plural : "objects",
             is_one_kind && kind.value == objects::Kind::job ? "Submit one: carve submit"
                                                             : "Create one: carve apply -f FILE");
}

// Gets and prints the objects or kinds. An object that does not exist is reported, and the others are printed.
void get_objects(Context& context, const std::vector<ObjectName>& wanted, const GetOptions& options) {
  std::vector<Found> found;
  Json document, all = Json::array();
  for (const ObjectName& object : wanted) {
    auto fetched_document = fetched(context, object, options);
    if (!fetched_document) continue;
    if (found.empty() || found.back().kind != object.kind) found.push_back({.kind = object.kind});
    document = std::move(*fetched_document);
    for (const Json& one :
         object.name.empty() ? document.value("items", Json::array()) : Json::array({document})) {
      all.push_back(one);
      found.back().items.push_back(one);
    }
  }
  if (found.empty()) return;
  const bool is_one_object = wanted.size() == 1 && !wanted.front().name.empty();
  if (wanted.size() > 1) document = Json{{"items", all}};
  const Listing listing{.list_key = is_one_object ? "" : "items", .name = [&](const Json& object) {
                          return name_of_object(object, wanted.front().kind);
                        }};
  if (print_document(context, options.output, document, listing)) return;
  if (all.empty()) return print_nothing(wanted);
  const bool has_prefix =
      std::ranges::any_of(found, [&](const Found& one) { return one.kind != found.front().kind; });
  bool is_first = true;
  for (Found& one : found) {
    if (one.items.empty()) continue;
    if (!options.output.sort_by.empty()) sort_list(one.items, parse_path(options.output.sort_by).value());
    if (!is_first) fmt::print("\n");
    is_first = false;
    print_table(context, one, options.output, has_prefix);
  }
}

void watch(Context& context, const std::vector<ObjectName>& wanted, const GetOptions& options) {
  const auto refuse = [&](const char* message) { context.refuse(message); };
  if (wanted.size() > 1) return refuse("-w watches one kind or one object; give only one");
  if (!options.output.sort_by.empty()) return refuse("-w prints changes in their order; leave out --sort-by");
  const ObjectName& object = wanted.front();
  std::string query = "labelSelector=" + api::percent_encoded(options.selector);
  if (has_namespaces(object.kind))
    query +=
        "&namespace=" + api::percent_encoded(object.name.empty() ? options.name_space : object.name_space);
  watch_objects(context, object, query, options.output);
}

void get(Context& context, const GetOptions& options) {
  if (options.all_namespaces && !options.name_space.empty()) {
    context.refuse("-A shows all namespaces; leave out -n " + options.name_space);
    return;
  }
  if (const auto slice = slice_named(options.words); slice && !options.watch)
    return get_slices(context, *slice, options.output);
  const auto wanted =
      parse_targets(options.words, options.name_space.empty() ? "default" : options.name_space);
  if (!wanted) {
    context.refuse(wanted.error());
    return;
  }
  options.watch ? watch(context, *wanted, options) : get_objects(context, *wanted, options);
}

// Returns the GPU request of each replica, as the controller interpreted it.
std::string gpu_text(const objects::Service& s) { return or_dash(s.status.gpu); }

void describe(const objects::Service& s) {
  const auto line = [](const char* name, const std::string& value) {
    fmt::print("{:<12} {}\n", name, value.empty() ? "-" : value);
  };
  line("name", s.metadata.name);
  line("namespace", s.metadata.namespace_);
  line("account", s.metadata.account);
  line("created", s.metadata.created_at);
  line("status", text(s.status.phase));
  line("endpoint", s.status.endpoint);
  line("replicas", fmt::format("{} ready of {}", s.status.ready_replicas, wanted_replicas(s)));
  line("revision", fmt::format("{}", s.status.revision));
  line("gpu", gpu_text(s));
  std::string command;
  for (const std::string& word : s.spec.run.command) command += (command.empty() ? "" : " ") + word;
  line("command", cut(harmless(command), 100));
  for (const objects::Condition& c : s.status.conditions)
    line("condition", harmless(fmt::format("{}={} {}{}{}", c.type, c.status, c.reason,
                                           c.message.empty() ? "" : ": ", c.message)));
  for (const std::string& warning : s.status.warnings) line("warning", harmless(warning));
  if (s.status.replica_list.empty()) return;
  std::vector<std::vector<std::string>> rows;
  for (const objects::ReplicaStatus& r : s.status.replica_list)
    rows.push_back({fmt::format("{}", r.index), fmt::format("{}", r.revision), text(r.state), r.slice,
                    or_dash(r.node), r.devices.empty() ? "-" : r.devices.front(),
                    r.port == 0 ? "-" : fmt::format("{}", r.port), fmt::format("{}", r.restarts),
                    or_dash(r.last_exit)});
  fmt::print("\n{}", table({"REPLICA", "REVISION", "STATE", "SLICE", "NODE", "DEVICE", "PORT", "RESTARTS",
                            "LAST EXIT"},
                           rows));
}

}  // namespace

void print_all(Context& context, objects::Kind kind) { get_objects(context, {{.kind = kind}}, {}); }

void add_get(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("get", "List objects of the controller");
  auto options = std::make_shared<GetOptions>();
  verb->add_option("KIND", options->words,
                   "Objects to list: kinds such as services or services,jobs, or all, or service/NAME..., or "
                   "service NAME...")
      ->required();
  verb->add_option("-n,--namespace", options->name_space,
                   "Namespace of the objects [all namespaces; default if an object is named]");
  verb->add_flag("-A,--all-namespaces", options->all_namespaces,
                 "List the objects of all namespaces, which is the default");
  verb->add_option("-l,--selector", options->selector,
                   "Only objects with matching labels, such as app=web,tier!=cache,zone in (a,b),!debug");
  verb->add_flag("-w,--watch", options->watch,
                 "Also print each change, until Ctrl-C; with -o json, one document per line");
  add_output_options(verb, options->output);
  verb->footer(
      "  carve get services\n"
      "  carve get service/demo -o json\n"
      "  carve get services -w -l app=web\n"
      "  carve get jobs --sort-by .status.submittedAt \\\n"
      "    -o custom-columns=JOB:.metadata.name,PHASE:.status.phase\n"
      "  carve get services -o jsonpath='{range .items[*]}{.metadata.name}{\"\\n\"}{end}'");
  verb->callback([&context, options] { get(context, *options); });
}

void add_describe(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("describe", "Show one object with its replicas and conditions");
  auto words = std::make_shared<std::vector<std::string>>();
  auto name_space = std::make_shared<std::string>("default");
  verb->add_option("KIND/NAME", *words, "The object: service/NAME, or service NAME")->required();
  verb->add_option("-n,--namespace", *name_space, "Namespace of the object")->capture_default_str();
  verb->footer("  carve describe service/demo");
  verb->callback([&context, words, name_space] {
    if (const auto slice = slice_named(*words); slice && !slice->empty()) return show_slice(context, *slice);
    const auto object = required_object(context, *words, *name_space);
    if (!object) return;
    if (is_queue_or_job(object->kind)) return describe_queue_or_job(context, *object);
    if (is_price(object->kind)) return describe_price(context, *object);
    if (is_node_or_pool(object->kind)) return describe_node_or_pool(context, *object);
    answered(context, context.controller().get<objects::Service>(object_path(*object)),
             [](const auto& service) { describe(service); });
  });
}

}  // namespace carve::cli
