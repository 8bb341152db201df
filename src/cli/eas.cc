// `carve eas`: services written as PAI-EAS documents, with the verbs of its client (eascmd).
#include "cli/documents.h"
#include "cli/node_pools.h"
#include "cli/object_output.h"
#include "cli/services.h"
#include "cli/verbs.h"
#include "objects/node_object.h"
#include "objects/revision.h"
#include "wire/api/controller.h"

namespace carve::cli {
namespace {

constexpr unsigned wait_seconds = 600;

struct EasOptions {
  std::string name, file;
  std::vector<std::string> changes;  // -Dmetadata.instance=2
  uint32_t version = 0;
  bool no_wait = false;
};

// Returns the name in the service's document, which may contain underscores.
std::string shown_name(const objects::Service& service) {
  const auto given = service.metadata.annotations.find("eas.carve.dev/name");
  return given != service.metadata.annotations.end() ? given->second : service.metadata.name;
}

void submit(Context& context, const std::string& document, bool waits) {
  const auto applied =
      context.controller().send<api::AppliedList>("POST", "/v1/documents?dialect=eas&create=true", document);
  answered(context, applied, [&](const api::AppliedList& list) {
    for (const api::AppliedObject& object : list.items) {
      for (const std::string& warning : object.warnings)
        fmt::print(stderr, "carve: warning: {}\n", harmless(warning));
      const auto applied_service = context.controller().get<objects::Service>(object_path(name_of(object)));
      fmt::print("[OK] service {} {}\n", applied_service ? shown_name(*applied_service) : object.name,
                 object.action);
      if (!waits || !wait_for_workload(context, name_of(object), wait_seconds)) continue;
      answered(context, context.controller().get<objects::Service>(object_path(name_of(object))),
               [](const objects::Service& service) {
                 fmt::print("[OK] Service is {}\n", service.spec.stopped ? "stopped" : "running");
                 if (!service.status.endpoint.empty()) fmt::print("{}\n", service.status.endpoint);
               });
    }
  });
}

void submit_file(Context& context, const EasOptions& options) {
  if (const auto document = read_documents(context, options.file))
    submit(context, *document, !options.no_wait);
}

// Sends a changed document. The controller rejects a file that names another service.
void modify(Context& context, const EasOptions& options) {
  std::string document;
  if (!options.file.empty()) {
    auto read = read_documents(context, options.file);
    if (!read) return;
    document = std::move(*read);
  } else if (options.changes.empty()) {
    fmt::print(
        stderr,
        "carve: nothing to change; use -s FILE or -D FIELD=VALUE, for example -Dmetadata.instance=2\n");
    context.status = usage_status;
    return;
  }
  const std::string path = object_path(eas_object(options.name), "modify");
  answered(context,
           context.controller().post<objects::Service>(
               path, api::EasChanges{.changes = options.changes, .document = document}),
           [&](const objects::Service& service) {
             print_warnings(service.status.warnings);
             fmt::print("[OK] service {} modified\n", shown_name(service));
             if (!options.no_wait) wait_for_workload(context, eas_object(options.name), wait_seconds);
           });
}

void list(Context& context) {
  if (context.json())
    return answered(context, whole_list(context.controller(), list_path(objects::Kind::service)),
                    [](const std::string& text) { fmt::print("{}\n", api::indented(text)); });
  answered(context, workloads(context.controller(), objects::Kind::service), [](const auto& list) {
    std::vector<std::vector<std::string>> rows;
    for (const objects::Service& s : list)
      rows.push_back({shown_name(s), fmt::format("{}", s.spec.replicas), s.metadata.created_at,
                      s.status.updated_at.empty() ? "-" : s.status.updated_at, text(s.status.phase),
                      s.status.endpoint.empty() ? "-" : s.status.endpoint});
    fmt::print("{}",
               table({"SERVICENAME", "INSTANCE", "CREATETIME", "UPDATETIME", "STATUS", "ENDPOINT"}, rows));
  });
}

void show_workers(Context& context, const std::string& name) {
  answered(context, context.controller().get<objects::Service>(object_path(eas_object(name))),
           [](const objects::Service& s) {
             std::vector<std::vector<std::string>> rows;
             for (const objects::ReplicaStatus& r : s.status.replica_list)
               rows.push_back({r.slice, text(r.state), r.node.empty() ? "-" : r.node,
                               fmt::format("{}", r.restarts), r.last_exit.empty() ? "-" : r.last_exit});
             fmt::print("{}", table({"INSTANCENAME", "STATUS", "NODE", "RESTARTS", "LAST EXIT"}, rows));
           });
}

void post(Context& context, const std::string& name, const char* verb, const char* done) {
  answered(context,
           context.controller().post<objects::Service>(object_path(eas_object(name), verb), api::Nothing{}),
           [&](const objects::Service& service) {
             fmt::print("[OK] service {} {}\n", shown_name(service), done);
           });
}

CLI::App* add_named(CLI::App* eas, const char* name, const char* help,
                    const std::shared_ptr<EasOptions>& options) {
  CLI::App* verb = eas->add_subcommand(name, help);
  verb->add_option("NAME", options->name, "The service")->required();
  return verb;
}

// Lists the nodes of a pool. Resource groups are node pools, and their instances are nodes.
void list_instances(Context& context, const std::string& pool) {
  const auto json = whole_list(context.controller(), list_path(objects::Kind::node) + "?");
  answered(context, json, [&](const std::string& nodes) {
    const auto list = api::read<objects::NodeList>(nodes, api::Reading::lenient);
    std::vector<std::vector<std::string>> rows;
    for (const objects::Node& node : list ? list->items : std::vector<objects::Node>{})
      if (node.spec.pool == pool)
        rows.push_back({node.metadata.name, text(node.status.state),
                        node.spec.instance_type.empty() ? "-" : harmless(node.spec.instance_type),
                        fmt::format("{}", node.status.gpus), fmt::format("{}", node.status.slices)});
    fmt::print("{}", table({"INSTANCENAME", "STATUS", "TYPE", "GPU", "SLICES"}, rows));
  });
}

void add_resource(CLI::App* eas, Context& context, const std::shared_ptr<EasOptions>& options) {
  CLI::App* resource = eas->add_subcommand("resource", "Show resource groups, which are node pools");
  resource->require_subcommand(1);
  resource->add_subcommand("ls", "List the node pools")->callback([&context] {
    print_all(context, objects::Kind::pool);
  });
  CLI::App* desc = resource->add_subcommand("desc", "Show a node pool");
  desc->add_option("NAME", options->name, "The pool")->required();
  desc->callback([&context, options] {
    describe_node_or_pool(context, {.kind = objects::Kind::pool, .name = options->name});
  });
  CLI::App* instances = resource->add_subcommand("li", "List the nodes of a pool");
  instances->add_option("NAME", options->name, "The pool")->required();
  instances->callback([&context, options] { list_instances(context, options->name); });
}

}  // namespace

void add_eas(CLI::App& app, Context& context) {
  CLI::App* eas = app.add_subcommand("eas", "Manage services with PAI-EAS documents, as eascmd does");
  eas->require_subcommand(1);
  auto options = std::make_shared<EasOptions>();
  CLI::App* create = eas->add_subcommand("create", "Create a service and wait until it runs");
  create->add_option("FILE", options->file, "File with the service's document (JSON)")->required();
  create->add_flag("--no-wait", options->no_wait, "Do not wait");
  create->footer("  carve eas create examples/eas.json");
  create->callback([&context, options] { submit_file(context, *options); });
  CLI::App* change = add_named(eas, "modify", "Change a service", options);
  change
      ->add_option("-s", options->file,
                   "File with the new document; if it has no name, only the fields in it are changed")
      ->type_name("FILE");
  change
      ->add_option("-D", options->changes,
                   "Field to change in the stored document, such as -Dmetadata.instance=2")
      ->type_name("FIELD=VALUE");
  change->add_flag("--no-wait", options->no_wait, "Do not wait");
  change->callback([&context, options] { modify(context, *options); });
  CLI::App* desc = add_named(eas, "desc", "Show a service", options);
  desc->callback([&context, options] {
    answered(context, context.controller().text(object_path(eas_object(options->name))),
             [](const auto& text) { fmt::print("{}\n", api::indented(text)); });
  });
  CLI::App* services = eas->add_subcommand("ls", "List the services");
  add_output(services, context);
  services->callback([&context] { list(context); });
  CLI::App* workers = add_named(eas, "showworkers", "List a service's replicas", options);
  workers->alias("w");
  workers->callback([&context, options] { show_workers(context, options->name); });
  add_eas_autoscale(*eas, context);
  add_resource(eas, context, options);
  add_named(eas, "start", "Start a stopped service", options)->callback([&context, options] {
    post(context, options->name, "start", "started");
  });
  add_named(eas, "stop", "Stop a service without deleting it", options)->callback([&context, options] {
    post(context, options->name, "stop", "stopped");
  });
  add_named(eas, "restart", "Replace every replica, one by one", options)->callback([&context, options] {
    post(context, options->name, "restart", "restarts");
  });
  CLI::App* version = add_named(eas, "version", "Return to an earlier version", options);
  version
      ->add_option("VERSION", options->version,
                   "Version to return to; desc shows the current one as revision")
      ->required();
  version->callback([&context, options] {
    answered(context,
             context.controller().post<objects::Service>(object_path(eas_object(options->name), "undo"),
                                                         objects::UndoRequest{options->version}),
             [&](const objects::Service& service) {
               fmt::print("[OK] service {} returns to version {}\n", shown_name(service), options->version);
             });
  });
  CLI::App* remove = add_named(eas, "delete", "Delete a service", options);
  remove->add_flag_function(
      "-f", [](int64_t) {}, "Accepted for scripts written for eascmd; there is never a confirmation prompt");
  remove->callback([&context, options] {
    answered(context, context.controller().remove<objects::Service>(object_path(eas_object(options->name))),
             [&](const objects::Service& service) {
               fmt::print("[OK] service {} deletion requested\n", shown_name(service));
             });
  });
}

}  // namespace carve::cli
