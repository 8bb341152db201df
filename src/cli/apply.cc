// `carve apply -f FILE` and `carve delete KIND NAME`.
#include "cli/documents.h"
#include "cli/services.h"
#include "cli/verbs.h"
#include "wire/api/controller.h"

namespace carve::cli {
namespace {

struct ApplyOptions {
  DocumentOptions documents;
  bool dry_run = false;
  std::string wait;  // Empty: not at all.
};

void apply(Context& context, const ApplyOptions& options) {
  const auto text = read_documents(context, options.documents);
  if (!text) return;
  const std::string target =
      fmt::format("/v1/documents?{}{}", query_of(options.documents), options.dry_run ? "&dryRun=true" : "");
  answered(context, context.controller().send<api::AppliedList>("POST", target, *text),
           [&](const auto& list) {
             for (const api::AppliedObject& object : list.items) {
               print_warnings(object.warnings);
               if (context.json()) continue;
               fmt::print("{} {}\n", name_of(object).text(), object.action);
               print_placement(object.placement);
             }
             if (context.json()) print_json(list);
             if (options.wait.empty() || options.dry_run) return;
             for (const api::AppliedObject& object : list.items)
               if (objects::text_of(name_of(object).kind).is_workload)
                 wait_for_workload(context, name_of(object), seconds_of(options.wait), false);
           });
}

}  // namespace

void add_apply(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("apply", "Create or change what documents ask for (JSON or YAML)");
  auto options = std::make_shared<ApplyOptions>();
  add_documents(verb, options->documents);
  verb->add_flag("--dry-run", options->dry_run,
                 "Check the documents, say where each new replica would be placed, and keep nothing");
  add_wait(verb, options->wait, "Wait until the programs run, at most so long");
  add_output(verb, context);
  verb->footer("  carve apply -f examples/service.yaml --wait");
  verb->callback([&context, options] { apply(context, *options); });
}

void add_delete(CLI::App& app, Context& context) {
  CLI::App* verb =
      app.add_subcommand("delete", "Delete objects: their programs are stopped, their slices end");
  auto words = std::make_shared<std::vector<std::string>>();
  auto name_space = std::make_shared<std::string>("default");
  verb->add_option("KIND/NAME", *words, "The object: service/NAME, or service NAME")->required();
  verb->add_option("-n,--namespace", *name_space, "Its namespace")->capture_default_str();
  verb->footer("  carve delete service/demo");
  verb->callback([&context, words, name_space] {
    if (const auto slice = slice_named(*words); slice && !slice->empty())
      return stop_slices(context, context.client(), {*slice});
    const auto object = required_object(context, *words, *name_space);
    if (!object) return;
    answered(context, context.controller().remove<api::Nothing>(object_path(*object)),
             [&](const auto&) { fmt::print("{} deleted\n", object->text()); });
  });
}

}  // namespace carve::cli
