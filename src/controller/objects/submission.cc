#include "controller/objects/submission.h"

#include <algorithm>
#include <span>

#include "controller/objects/document_readers.h"
#include "controller/objects/kind_table.h"
#include "dialects/explain/translation.h"
#include "dialects/foreign_files.h"
#include "dialects/label_synonyms.h"
#include "dialects/pod/cluster_service.h"
#include "dialects/pod/manifest.h"
#include "dialects/pod/pod_json.h"
#include "objects/node_object.h"
#include "objects/rules/service_terms.h"
#include "wire/api/json.h"
#include "wire/api/json_value.h"
#include "yaml/documents.h"

namespace carve::controller {
namespace {

using api::FieldErrors;
using Read = Result<Submission, FieldErrors>;

Submission of_service(objects::Service service, std::vector<std::string> warnings) {
  TypedJson spec = service.spec;
  return {.kind = objects::Kind::service,
          .metadata = std::move(service.metadata),
          .spec = std::move(spec),
          .form = std::move(service.spec),
          .warnings = std::move(warnings)};
}

}  // namespace

Read read_service(const std::string& text, const SubmissionContext&) {
  auto [service, wrong] = api::read_partly<objects::Service>(text, api::Reading::strict);
  if (FieldErrors errors = api::joined(std::move(wrong), objects::check(service)); !errors.empty())
    return tl::unexpected(std::move(errors));
  return of_service(std::move(service), {});
}

Read read_application(const std::string& text, const SubmissionContext& context) {
  auto [application, wrong] = dialects::read_application(text);
  auto service = dialects::service_of(application, context.of_pool(application.spec.pool).application);
  FieldErrors errors = api::joined(std::move(wrong), service ? FieldErrors{} : service.error());
  if (!errors.empty()) return tl::unexpected(std::move(errors));
  return Submission{.kind = objects::Kind::application,
                    .metadata = std::move(application.metadata),
                    .spec = application.spec,
                    .form = std::move(service->spec),
                    .warnings = std::move(service->warnings)};
}

Read read_node(const std::string& text, const SubmissionContext&) {
  auto node = api::read_all<objects::NodeDocument>(text, api::Reading::strict);
  if (!node) return tl::unexpected(std::move(node.error()));
  FieldErrors errors = objects::check_metadata(node->metadata);
  auto labels = dialects::our_labels(node->metadata.labels, "metadata.labels");
  if (!labels) errors.insert(errors.end(), labels.error().begin(), labels.error().end());
  if (!errors.empty()) return tl::unexpected(std::move(errors));
  Submission out{.kind = objects::Kind::node,
                 .metadata = std::move(node->metadata),
                 .spec = {},
                 .form = {},
                 .warnings = {}};
  out.metadata.labels = {labels->begin(), labels->end()};
  const objects::NodeDocumentSpec& spec = node->spec;
  for (const auto& [field, is_there] : {std::pair{"stopped", spec.stopped.has_value()},
                                        {"restarting", spec.restarting.has_value()},
                                        {"draining", spec.draining.has_value()},
                                        {"cordoned", spec.cordoned.has_value()}})
    if (is_there)
      out.warnings.push_back(
          fmt::format("spec.{} is ignored in a document; use the corresponding carve command", field));
  out.spec = objects::NodePatchSpec{
      .pool = spec.pool, .instance_type = spec.instance_type, .schedulable = spec.schedulable};
  return out;
}

namespace {

// Renames the fields in errors to those of the user's document.
FieldErrors in_users_words(FieldErrors errors, std::span<const std::string_view> dialects_of_text,
                           const std::string& text) {
  for (api::FieldError& error : errors)
    for (const std::string_view dialect : dialects_of_text) {
      const std::string field = dialects::field_in_source(dialect, text, error.field);
      if (field == error.field) continue;
      if (error.message.starts_with(error.field + ":")) error.message.replace(0, error.field.size(), field);
      error.field = field;
      break;
    }
  return errors;
}
constexpr std::string_view eas_dialect[] = {"eas"};
constexpr std::string_view manifest_dialects[] = {"ack", "vke", "hami", "kubernetes"};

Read read_eas(const std::string& text, const SubmissionContext& context) {
  auto eas = dialects::from_eas(text, context.of_pool(dialects::eas_pool(text)).eas);
  if (!eas) return tl::unexpected(in_users_words(std::move(eas.error()), eas_dialect, text));
  return of_service(std::move(eas->service), std::move(eas->warnings));
}

Read read_manifest(const std::string& text, const SubmissionContext& context) {
  auto manifest =
      dialects::from_manifest(text, {.allows_unknown_gpu_requests = context.allows_unknown_gpu_requests});
  if (!manifest) return tl::unexpected(in_users_words(std::move(manifest.error()), manifest_dialects, text));
  return of_service(std::move(manifest->service), std::move(manifest->warnings));
}

// Stores a document of another system byte for byte.
void keep_written(const std::string& written, Submission& submission) {
  submission.form.source.document = written;
  submission.spec = submission.form;
}

using Reader = DocumentReader;

// Returns a top-level text field of the JSON document, or an empty string if it is missing.
std::string top_text(const std::string& text, const char* field) {
  const auto document = api::parse(text);
  return document ? dialects::text_member(*document, field) : "";
}
std::string kind_in(const std::string& text) { return top_text(text, "kind"); }

Read refuse_kind(const std::string& text, const SubmissionContext&) {
  const std::string kind = kind_in(text);
  std::vector<std::string_view> known;
  for (const objects::KindText& one : objects::kinds) known.push_back(one.kind);
  return tl::unexpected(
      FieldErrors{{.field = "kind",
                   .value = kind,
                   .message = fmt::format(
                       "kind: {}; the kinds are {}, and manifests of kind Pod, Deployment and StatefulSet",
                       kind.empty() ? "is required" : fmt::format("'{}' is not a kind", kind.substr(0, 80)),
                       fmt::join(known, ", "))}});
}

// Rejects a document of another API that has a kind of the same name, such as Job, but none of Carve's
// fields.
Read refuse_version(const std::string& text, const SubmissionContext&) {
  const std::string version = top_text(text, "apiVersion");
  return tl::unexpected(FieldErrors{
      {.field = "apiVersion",
       .value = version,
       .message = fmt::format("apiVersion: {}; the apiVersion of a Carve {} is {}",
                              version.empty() ? "is required" : fmt::format("'{}'", version.substr(0, 80)),
                              kind_in(text), objects::api_version)}});
}

// Returns the reader for the kind of a document in Carve's own form.
Reader reader_of_kind(const std::string& text) {
  const std::string kind = kind_in(text);
  for (const objects::KindText& one : objects::kinds) {
    if (one.kind != kind) continue;
    const Reader reader = row_of(one.value).read_document;
    // These two check the version with their other fields.
    const bool checks_version = reader == read_service || reader == read_application;
    return checks_version || top_text(text, "apiVersion") == objects::api_version ? reader : refuse_version;
  }
  return refuse_kind;
}

Read refuse_foreign(const std::string& text, const SubmissionContext&) {
  return tl::unexpected(FieldErrors{dialects::foreign_file_problem(text).value_or(api::FieldError())});
}

Reader reader_of(const std::string& text, std::string_view dialect) {
  if (dialects::foreign_file_problem(text)) return refuse_foreign;
  if (dialect == "eas") return read_eas;
  if (dialect == "carve") return reader_of_kind(text);
  if (dialect != "auto") return read_manifest;
  if (dialects::is_eas(text)) return read_eas;
  if (dialects::is_manifest(text)) return read_manifest;
  return reader_of_kind(text);
}

// The manifest that a submission was read from.
struct ReadManifest {
  size_t submission = 0;
  dialects::PodFace pod;
};

// Applies a Kubernetes Service, which does not become an object: it sets the port of the workload whose pods
// its selector matches.
Result<void, FieldErrors> give_port(const std::string& text, const std::vector<ReadManifest>& manifests,
                                    std::vector<Submission>& to) {
  const auto address = dialects::read_cluster_service(text);
  if (!address) return tl::unexpected(address.error());
  std::vector<const ReadManifest*> found;
  std::vector<std::string> names;
  for (const ReadManifest& one : manifests) {
    const objects::Metadata& metadata = to[one.submission].metadata;
    const std::string name_space =
        address->name_space.empty() ? objects::Metadata().namespace_ : address->name_space;
    if (metadata.namespace_ != name_space || !dialects::selects(*address, one.pod)) continue;
    found.push_back(&one);
    names.push_back(metadata.name);
  }
  const auto refused = [&](std::string message) {
    return tl::unexpected(FieldErrors{{.field = "spec.selector",
                                       .value = address->name,
                                       .message = "spec.selector: " + std::move(message)}});
  };
  const std::string name = address->name.substr(0, 80);
  if (found.empty())
    return refused(
        fmt::format("the Service '{}' selects the pods of no Deployment, StatefulSet or Pod in these "
                    "documents; apply them together, and give the Service labels of the pods",
                    name));
  if (found.size() > 1)
    return refused(
        fmt::format("the Service '{}' selects the pods of {}, but an address can have only one workload; add "
                    "a label to the selector that only one of them has",
                    name, fmt::join(names, ", ")));
  Submission& workload = to[found.front()->submission];
  std::ranges::copy(address->warnings, std::back_inserter(workload.warnings));
  if (workload.form.port) {
    workload.warnings.push_back(
        fmt::format("Service {} has no effect here: {} has port {}, and a service can have only one address",
                    name, names.front(), *workload.form.port));
    return {};
  }
  if (auto given = dialects::give_port(*address, found.front()->pod, workload.form); !given) return given;
  workload.spec = workload.form;
  return {};
}

using Documents = std::vector<yaml::SourceDocument>;

// Adds the document, or the items if it is a list: a Kubernetes list (kind: List) or one printed by `carve
// get -o yaml`.
void add_items(yaml::SourceDocument document, size_t number, Documents& out, FieldErrors& errors) {
  const auto list = api::parse(document.json);
  const bool has_items = list && list->is_object() && list->contains("items") && (*list)["items"].is_array();
  const bool is_list = has_items && (!list->contains("kind") || (*list)["kind"] == "List");
  if (!is_list) return out.push_back(std::move(document));
  for (const api::Json& item : (*list)["items"]) {
    if (!item.is_object())
      return errors.push_back(
          {.field = "items",
           .value = "",
           .message = fmt::format("document {}: items: a list may contain only objects", number)});
    std::string json = item.dump(-1, ' ', /*ensure_ascii=*/false, api::Json::error_handler_t::replace);
    out.push_back({.json = json, .written = json});
  }
}

// Returns the documents of the text, with each list replaced by its items.
Result<Documents, FieldErrors> objects_in(std::string_view text) {
  auto documents = yaml::source_documents_of(text);
  if (!documents) {
    if (auto helm = dialects::helm_template_problem(text))
      return tl::unexpected(FieldErrors{std::move(*helm)});
    return documents;
  }
  Documents out;
  FieldErrors errors;
  for (size_t i = 0; i < documents->size() && errors.empty(); ++i)
    add_items(std::move((*documents)[i]), i + 1, out, errors);
  if (errors.empty() && out.size() > yaml::max_documents)
    errors.push_back(
        {.field = "",
         .value = "",
         .message = fmt::format("there are more than {} objects; apply them with several requests",
                                yaml::max_documents)});
  if (!errors.empty()) return tl::unexpected(std::move(errors));
  return out;
}

}  // namespace

Result<std::vector<Submission>, FieldErrors> read_submissions(std::string_view text, std::string_view dialect,
                                                              const SubmissionContext& context) {
  const auto documents = objects_in(text);
  if (!documents) return tl::unexpected(documents.error());
  std::vector<Submission> out;
  std::vector<ReadManifest> manifests;
  std::vector<size_t> addresses;  // Indices of documents of the Kubernetes kind Service.
  FieldErrors errors;
  const auto add_errors = [&](size_t i, FieldErrors wrong) {
    for (api::FieldError& error : wrong) {
      if (documents->size() > 1) error.message = fmt::format("document {}: {}", i + 1, error.message);
      if (errors.size() < api::max_field_errors) errors.push_back(std::move(error));
    }
  };
  for (size_t i = 0; i < documents->size(); ++i) {
    const std::string& one = (*documents)[i].json;
    const Reader reader = reader_of(one, dialect);
    if ((dialect == "auto" || reader == read_manifest) && dialects::is_cluster_service(one)) {
      addresses.push_back(i);
    } else if (auto read = reader(one, context)) {
      if (reader == read_eas || reader == read_manifest) keep_written((*documents)[i].written, *read);
      if (reader == read_manifest) manifests.push_back({out.size(), dialects::pod_face(one)});
      out.push_back(std::move(*read));
    } else {
      add_errors(i, std::move(read.error()));
    }
  }
  // Services are applied last, so that the order of the documents does not matter, and only without errors,
  // so that an invalid workload is not also reported as missing.
  if (errors.empty())
    for (const size_t i : addresses)
      if (auto given = give_port((*documents)[i].json, manifests, out); !given)
        add_errors(i, std::move(given.error()));
  if (!errors.empty()) return tl::unexpected(std::move(errors));
  if (out.empty())
    return tl::unexpected(FieldErrors{{.field = "", .value = "", .message = "there is no document"}});
  return out;
}

}  // namespace carve::controller
