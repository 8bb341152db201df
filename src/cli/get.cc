// `carve get KIND [NAME]` and `carve describe KIND NAME`.
#include <algorithm>

#include "base/bytes.h"
#include "base/share.h"
#include "cli/bill.h"
#include "cli/jobs.h"
#include "cli/node_pools.h"
#include "cli/object_output.h"
#include "cli/object_watch.h"
#include "cli/plain_objects.h"
#include "cli/services.h"
#include "cli/verbs.h"
#include "wire/api/percent.h"

namespace carve::cli {
namespace {

struct GetOptions {
  std::vector<std::string> words;
  std::string name_space, selector, output = "table";
  bool all_namespaces = false, watch = false;
};

// Returns the GPU request of each replica, as the controller interpreted it.
std::string gpu_text(const objects::Service& s) {
  return s.status.gpu.empty() ? "-" : harmless(s.status.gpu);
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : harmless(text); }

// The NAMESPACE column is shown if an object is outside the default namespace.
void print(const std::vector<objects::Service>& services, bool wide) {
  std::vector<std::string> heading = {"NAME", "STATUS", "READY", "GPU", "REVISION", "RESTARTS", "ENDPOINT"};
  const bool has_namespaces =
      wide || std::ranges::any_of(services, [](const auto& s) { return s.metadata.namespace_ != "default"; });
  if (has_namespaces) heading.emplace_back("NAMESPACE");
  if (wide) heading.insert(heading.end(), {"ACCOUNT", "CREATED"});
  std::vector<std::vector<std::string>> rows;
  for (const objects::Service& s : services) {
    rows.push_back({s.metadata.name, or_dash(text(s.status.phase)),
                    fmt::format("{}/{}", s.status.ready_replicas, wanted_replicas(s)), gpu_text(s),
                    fmt::format("{}", s.status.revision), fmt::format("{}", s.status.restarts),
                    or_dash(s.status.endpoint)});
    if (has_namespaces) rows.back().push_back(s.metadata.namespace_);
    if (wide) rows.back().insert(rows.back().end(), {or_dash(s.metadata.account), s.metadata.created_at});
  }
  fmt::print("{}", table(heading, rows));
}

void usage(Context& context, const std::string& message) { context.refuse(message); }

void get(Context& context, const GetOptions& options) {
  if (options.all_namespaces && !options.name_space.empty())
    return usage(context, "-A shows all namespaces; leave out -n " + options.name_space);
  if (const auto slice = slice_named(options.words); slice && !options.watch)
    return get_slices(context, *slice, options.output);
  const auto object =
      parse_object(options.words, options.name_space.empty() ? "default" : options.name_space);
  if (!object) return usage(context, object.error());
  const objects::KindText& kind = objects::text_of(object->kind);
  if (is_queue_or_job(object->kind) && !options.watch)
    return get_queues_or_jobs(context, *object, options.name_space, options.selector, options.output);
  if (is_price(object->kind) && !options.watch) return get_prices(context, *object, options.output);
  if (!kind.is_workload) {
    if (options.watch)
      return watch_objects(context, *object, "labelSelector=" + api::percent_encoded(options.selector),
                           options.output);
    return (is_node_or_pool(object->kind) ? get_nodes_or_pools : get_plain_objects)(
        context, *object, options.selector, options.output);
  }
  const bool all = object->name.empty();
  std::string target = list_path(object->kind) + "?namespace=" + api::percent_encoded(options.name_space);
  if (!options.selector.empty()) target += "&labelSelector=" + api::percent_encoded(options.selector);
  if (!all) target = object_path(*object);
  const client::Client controller = context.controller();
  if (options.watch)
    return watch_objects(context, *object,
                         fmt::format("namespace={}&labelSelector={}",
                                     api::percent_encoded(all ? options.name_space : object->name_space),
                                     api::percent_encoded(options.selector)),
                         options.output);
  const auto text = [&] { return all ? whole_list(controller, target) : controller.text(target); };
  if (options.output == "json")
    return answered(context, text(), [](const auto& json) { fmt::print("{}\n", api::indented(json)); });
  if (options.output == "yaml")
    return answered(context, text(), [](const auto& json) { fmt::print("{}", yaml_of(json)); });
  std::vector<objects::Service> found;
  if (all)
    answered(context, text(), [&](const auto& json) {
      const auto list = api::read<ServiceList>(json, api::Reading::lenient);
      if (!list) {
        complain({.title = "list", .detail = "cannot read the controller's response: " + list.error()});
        context.status = failed_status;
        return;
      }
      found = list->items;
    });
  else
    answered(context, controller.get<objects::Service>(target), [&](const auto& one) { found = {one}; });
  if (context.status != 0) return;
  if (options.output == "name") {
    for (const objects::Service& s : found) fmt::print("{}/{}\n", kind.singular, s.metadata.name);
  } else if (found.empty()) {
    fmt::print(stderr, "No {}. Create one: carve apply -f FILE\n", kind.plural);
  } else {
    print(found, options.output == "wide");
  }
}

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

void add_get(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("get", "List objects of the controller");
  auto options = std::make_shared<GetOptions>();
  verb->add_option("KIND", options->words,
                   "Objects to list: a kind such as services, or service/NAME, or service NAME")
      ->required();
  verb->add_option("-n,--namespace", options->name_space,
                   "Namespace of the objects [all namespaces; default if an object is named]");
  verb->add_flag("-A,--all-namespaces", options->all_namespaces,
                 "List the objects of all namespaces, which is the default");
  verb->add_option("-l,--selector", options->selector,
                   "Only objects with matching labels, such as app=web,tier!=cache,zone in (a,b),!debug");
  verb->add_flag("-w,--watch", options->watch,
                 "Also print each change, until Ctrl-C; with -o json, one document per line");
  verb->add_option("-o,--output", options->output, "Output format")
      ->check(CLI::IsMember({"table", "wide", "json", "yaml", "name"}))
      ->capture_default_str();
  verb->footer("  carve get services\n  carve get service/demo -o json\n  carve get services -w -l app=web");
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
    if (!objects::text_of(object->kind).is_workload) return describe_plain_object(context, *object);
    answered(context, context.controller().get<objects::Service>(object_path(*object)),
             [](const auto& service) { describe(service); });
  });
}

}  // namespace carve::cli
