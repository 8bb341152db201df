// `carve explain`: prints where a request would be placed, or each device's reason against it; with -f,
// prints which rule translated which field of a document, and where its replicas would be placed. No slice is
// granted.
#include "cli/documents.h"
#include "cli/node_pools.h"
#include "cli/services.h"
#include "cli/slice_options.h"
#include "cli/user_devices.h"
#include "cli/verbs.h"
#include "wire/api/plan.h"

namespace carve::cli {
namespace {

void print_translation(const std::vector<api::TranslatedField>& translation) {
  for (const api::TranslatedField& row : translation)
    fmt::print("  {} {} -> {}: {}\n", harmless(row.field), harmless(row.value),
               row.becomes.empty() ? "nothing" : fmt::format("{} {}", row.becomes, harmless(row.result)),
               row.rule);
}

void print_explained(const api::AppliedObject& object) {
  fmt::print("{}\n", name_of(object).text());
  print_translation(object.translation);
  print_placement(object.placement);
}

// Sets exit status 0 if every new replica fits.
void explain_documents(Context& context, const DocumentOptions& documents) {
  const std::string target = fmt::format("/v1/documents?{}&explain=true", query_of(documents));
  api::AppliedList all;
  for_each_file(context, documents, [&](const DocumentFile& file) {
    answered_for(context, file, context.controller().send<api::AppliedList>("POST", target, file.text),
                 [&](const api::AppliedList& list) {
                   for (const api::AppliedObject& object : list.items) {
                     print_warnings(object.warnings);
                     for (const api::ReplicaPlacement& at : object.placement)
                       if (at.node.empty()) context.status = failed_status;
                     if (!context.json()) print_explained(object);
                     all.items.push_back(object);
                   }
                 });
  });
  if (context.json() && !all.items.empty()) print_json(all);
}

// Sets exit status 0 if the request fits on the devices that the user's environment names.
void explain_request(Context& context, const SliceOptions& options) {
  const auto wrong = [&](const std::string& message) { context.refuse(message); };
  auto request = to_request(options);
  if (!request) return wrong(request.error());
  const client::AgentClient agent = context.agent();
  const auto named = user_devices(agent, *request);
  if (!named) return wrong(named.error());
  auto answer = agent.explain(*request);
  for (const std::string& list : preferred_lists(*named, request->amounts.device_count())) {
    api::SliceRequest on_devices = *request;
    on_devices.device = list;
    answer = agent.explain(on_devices);
    if (!answer || answer->fits) break;
  }
  answered(context, answer, [&](const auto& explanation) {
    context.status = explanation.fits ? 0 : failed_status;
    if (context.json()) return print_json(explanation);
    fmt::print("{}\n", explanation.message);
    for (const api::Verdict& v : explanation.devices)
      fmt::print("  device {}: {}\n", v.index,
                 inked(context.screen, v.fits ? Ink::green : Ink::red, v.message));
  });
}

}  // namespace

void add_explain(CLI::App& app, Context& context) {
  CLI::App* verb =
      app.add_subcommand("explain", "Print where a request would be placed, or why no device fits");
  auto options = std::make_shared<SliceOptions>();
  auto documents = std::make_shared<DocumentOptions>();
  add_slice_options(verb, *options);
  add_documents(verb, *documents, /*is_required=*/false);
  add_output(verb, context);
  verb->footer(
      "Exit status 0 if the request fits, 1 if not. CUDA_VISIBLE_DEVICES restricts the devices as for\n"
      "carve run.\n"
      "  carve explain --memory 24GiB\n"
      "  carve explain -f examples/service.yaml");
  add_explain_slicing(verb, context);
  verb->callback([&context, verb, options, documents] {
    if (!verb->get_subcommands().empty()) return;
    if (!documents->files.empty()) return explain_documents(context, *documents);
    explain_request(context, *options);
  });
}

}  // namespace carve::cli
