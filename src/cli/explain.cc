// `carve explain`: prints where a request would be placed, or each device's reason against it; with -f,
// prints which rule translated which field of a document, and where its replicas would be placed. No slice is
// granted. With the name of a field, as in kubectl, prints the field's meaning.
#include "cli/documents.h"
#include "cli/field_docs.h"
#include "cli/node_pools.h"
#include "cli/services.h"
#include "cli/slice_options.h"
#include "cli/suggestions.h"
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

struct FieldOptions {
  std::string path;         // "service.spec.gpu"
  std::string schema_kind;  // Prints the JSON Schema of this kind.
};

void explain_field(Context& context, const FieldOptions& options, Depth depth) {
  const auto field = find_field(field_docs(), options.path);
  if (!field) return (void)context.refuse(field.error());
  fmt::print("{}", explained(field_docs(), *field, depth));
}

void print_schema(Context& context, const std::string& word) {
  const auto kind = objects::parse_kind(word);
  if (!kind) return (void)context.refuse(unknown_kind(word));
  fmt::print("{}", json_schema(field_docs(), *kind));
}

}  // namespace

void add_explain(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand(
      "explain", "Print where a request would be placed, why no device fits, or the fields of an object");
  auto field = std::make_shared<FieldOptions>();
  verb->add_option("FIELD", field->path, "Field of an object to explain: KIND or KIND.spec.FIELD");
  verb->add_option("--schema", field->schema_kind, "Print the JSON Schema of this kind, for editors")
      ->type_name("KIND");
  auto options = std::make_shared<SliceOptions>();
  auto documents = std::make_shared<DocumentOptions>();
  add_slice_options(verb, *options);
  add_documents(verb, *documents, /*is_required=*/false);
  verb->get_option("--recursive")
      ->description("Also read the subfolders of a folder; with FIELD, print all fields in it, and theirs");
  add_output(verb, context);
  verb->footer(
      "Exit status 0 if the request fits, 1 if not. CUDA_VISIBLE_DEVICES restricts the devices as for\n"
      "carve run.\n"
      "  carve explain --memory 24GiB\n"
      "  carve explain -f examples/service.yaml\n"
      "  carve explain service.spec.gpu\n"
      "  carve explain job --recursive");
  add_explain_slicing(verb, context);
  verb->callback([&context, verb, field, options, documents] {
    if (!verb->get_subcommands().empty()) return;
    if (!field->schema_kind.empty()) return print_schema(context, field->schema_kind);
    const Depth depth = documents->recursive ? Depth::recursive : Depth::one_level;
    if (!field->path.empty()) return explain_field(context, *field, depth);
    if (!documents->files.empty()) return explain_documents(context, *documents);
    explain_request(context, *options);
  });
}

}  // namespace carve::cli
