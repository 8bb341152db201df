// `carve apply -f FILE` and `carve delete KIND NAME`.
#include <algorithm>

#include "cli/deletion.h"
#include "cli/documents.h"
#include "cli/jobs.h"
#include "cli/object_columns.h"
#include "cli/object_output.h"
#include "cli/services.h"
#include "cli/time_span.h"
#include "cli/verbs.h"
#include "wire/api/controller.h"
#include "wire/api/percent.h"

namespace carve::cli {
namespace {

struct ApplyOptions {
  DocumentOptions documents;
  bool dry_run = false;
  std::string wait;  // Empty for no wait.
};

void print_applied(const api::AppliedList& list) {
  for (const api::AppliedObject& object : list.items) {
    fmt::print("{} {}\n", name_of(object).text(), object.action);
    print_placement(object.placement);
  }
}

void wait_for_applied(Context& context, const api::AppliedObject& object, unsigned timeout_seconds) {
  const ObjectName name = name_of(object);
  if (objects::text_of(name.kind).is_workload)
    wait_for_workload(context, name, timeout_seconds);
  else if (name.kind == objects::Kind::job || name.kind == objects::Kind::ray_cluster)
    wait_until_job_runs(context, name, timeout_seconds);
}

// Applies each file by itself: all of its documents or none. A file that is rejected does not prevent the
// others.
void apply(Context& context, const ApplyOptions& options) {
  const std::string target =
      fmt::format("/v1/documents?{}{}", query_of(options.documents), options.dry_run ? "&dryRun=true" : "");
  api::AppliedList all;
  for_each_file(context, options.documents, [&](const DocumentFile& file) {
    answered_for(context, file, context.controller().send<api::AppliedList>("POST", target, file.text),
                 [&](const api::AppliedList& list) {
                   for (const api::AppliedObject& object : list.items) print_warnings(object.warnings);
                   if (!context.json()) print_applied(list);
                   all.items.insert(all.items.end(), list.items.begin(), list.items.end());
                 });
  });
  if (context.json() && !all.items.empty()) print_json(all);
  if (options.wait.empty() || options.dry_run) return;
  for (const api::AppliedObject& object : all.items)
    wait_for_applied(context, object, seconds_of(options.wait));
}

}  // namespace

void add_apply(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("apply", "Create or change the objects in documents (JSON or YAML)");
  auto options = std::make_shared<ApplyOptions>();
  add_documents(verb, options->documents);
  verb->add_flag("--dry-run", options->dry_run,
                 "Check the documents, print where each new replica would be placed, and store nothing");
  add_wait(verb, options->wait, "Wait until the programs run, but no longer than this");
  add_output(verb, context);
  verb->footer(
      "The documents of a file are applied together or not at all. The files *.json, *.yaml and *.yml of a\n"
      "folder are applied one after the other, sorted by name. If one is rejected, the others are still\n"
      "applied, and the exit status is 1.\n"
      "  carve apply -f examples/service.yaml --wait\n"
      "  carve apply -R -f deploy/ -f extra.yaml");
  verb->callback([&context, options] { apply(context, *options); });
}

namespace {

struct DeleteOptions {
  DeletionWait wait;
  DocumentOptions documents;
  std::vector<std::string> words;
  std::string name_space = "default", selector;
  bool all = false;
};

// The part of a list that names its objects.
struct NamedObject {
  objects::Metadata metadata;
};
struct NamedList {
  std::vector<NamedObject> items;
};

// Deletes the objects of the kinds that the selector matches, or all of them.
void remove_matching(Context& context, const DeleteOptions& options) {
  const auto kinds = parse_targets(options.words, options.name_space);
  if (!kinds || !kinds->front().name.empty()) {
    context.refuse(kinds ? "-l and --all delete the objects of a kind; leave out " + options.words.back()
                         : kinds.error());
    return;
  }
  if (options.words.front() == "all") {
    context.refuse(
        "'all' would also delete queues, pools and tariffs; name the kinds, such as services,jobs");
    return;
  }
  std::vector<ObjectName> objects;
  for (const ObjectName& kind : *kinds) {
    std::string target = list_path(kind.kind) + "?labelSelector=" + api::percent_encoded(options.selector);
    if (has_namespaces(kind.kind)) target += "&namespace=" + api::percent_encoded(options.name_space);
    answered(context, whole_list(context.controller(), target), [&](const std::string& json) {
      const auto list = api::read<NamedList>(json, api::Reading::lenient);
      if (!list) {
        complain({.title = "list", .detail = "cannot read the controller's response: " + list.error()});
        context.status = context.problem_status;
        return;
      }
      for (const NamedObject& one : list->items)
        objects.push_back({kind.kind, one.metadata.name, options.name_space});
    });
  }
  if (context.status != 0) return;
  if (objects.empty()) return fmt::print(stderr, "No objects match.\n");
  delete_objects(context, objects, options.wait);
}

// Deletes the objects of the documents, the last one first. A dry run checks them first, so if one document
// of one file is invalid, nothing is deleted.
void remove_documents(Context& context, const DocumentOptions& documents, const DeletionWait& wait) {
  const std::string target = fmt::format("/v1/documents?{}&dryRun=true", query_of(documents));
  std::vector<ObjectName> objects;
  for_each_file(context, documents, [&](const DocumentFile& file) {
    answered_for(context, file, context.controller().send<api::AppliedList>("POST", target, file.text),
                 [&](const api::AppliedList& list) {
                   for (const api::AppliedObject& object : list.items) objects.push_back(name_of(object));
                 });
  });
  if (context.status != 0) return;
  std::ranges::reverse(objects);
  delete_objects(context, objects, wait);
}

void remove(Context& context, const DeleteOptions& options) {
  const auto usage = [&](const std::string& message) { context.refuse(message); };
  if (!options.words.empty() && !options.documents.files.empty())
    return usage("-f FILE cannot be used with " + options.words.front() +
                 "; give either objects or documents");
  if (options.all && !options.selector.empty())
    return usage("-l selects objects, and --all deletes all; use one");
  if (options.all || !options.selector.empty())
    return options.words.empty() ? usage("-l and --all need a kind, such as services")
                                 : remove_matching(context, options);
  if (options.words.empty() && options.documents.files.empty())
    return usage(
        "no object is given; add objects, such as service/NAME, or a file of documents with -f FILE");
  if (options.words.empty()) return remove_documents(context, options.documents, options.wait);
  if (const auto slice = slice_named(options.words); slice && !slice->empty())
    return stop_slices(context, context.agent(), {*slice}, StopWait::until_ended, print_name);
  const auto objects = parse_objects(options.words, options.name_space);
  if (!objects) return usage(objects.error());
  if (objects->front().name.empty()) return usage("no object is given; add one, such as service/NAME");
  delete_objects(context, *objects, options.wait);
}

}  // namespace

void add_delete(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand(
      "delete", "Delete objects, stop their programs, end their slices, and wait until they are gone");
  auto options = std::make_shared<DeleteOptions>();
  verb->add_option("KIND/NAME", options->words, "Objects to delete: service/NAME..., or service NAME...");
  add_documents(verb, options->documents, /*is_required=*/false);
  verb->add_option("-n,--namespace", options->name_space,
                   "Namespace of the objects; documents with -f name their own")
      ->capture_default_str();
  verb->add_option("-l,--selector", options->selector,
                   "Delete the objects of a kind with matching labels, such as app=web");
  verb->add_flag("--all", options->all, "Delete all objects of a kind in the namespace");
  verb->add_flag("--wait", options->wait.waits,
                 "Wait until the objects are gone; --wait=false returns immediately")
      ->capture_default_str();
  verb->add_option("--timeout", options->wait.timeout, "Maximum wait, such as 90s or 10m [no limit]")
      ->check(check_time_span);
  verb->footer(
      "  carve delete service/demo\n  carve delete jobs -l team=red\n  carve delete -f "
      "examples/service.yaml");
  verb->callback([&context, options] { remove(context, *options); });
}

}  // namespace carve::cli
