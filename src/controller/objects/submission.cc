#include "controller/objects/submission.h"

#include <algorithm>

#include "fronts/documents.h"
#include "fronts/engines/cluster_check.h"
#include "fronts/engines/job_check.h"
#include "fronts/engines/queue_check.h"
#include "fronts/label_synonyms.h"
#include "fronts/pod/guards.h"
#include "fronts/pod/manifest.h"
#include "fronts/pool_check.h"
#include "fronts/render/manifests.h"
#include "fronts/service_terms.h"
#include "fronts/tariff/budget_check.h"
#include "fronts/tariff/tariff_check.h"
#include "wire/api/json.h"
#include "wire/api/json_value.h"
#include "wire/objects/node_object.h"

namespace carve::controller {
namespace {

using api::FieldErrors;
using Read = Result<Submission, FieldErrors>;

Submission of_service(objects::Service service, std::vector<std::string> warnings) {
  std::string spec = api::write(service.spec);
  return {.kind = objects::Kind::service,
          .metadata = std::move(service.metadata),
          .spec = std::move(spec),
          .form = std::move(service.spec),
          .warnings = std::move(warnings)};
}

Read read_service(const std::string& text, const SubmissionContext&) {
  auto [service, wrong] = api::read_partly<objects::Service>(text, api::Reading::strict);
  if (FieldErrors errors = api::joined(std::move(wrong), fronts::check(service)); !errors.empty())
    return tl::unexpected(std::move(errors));
  return of_service(std::move(service), {});
}

Read read_application(const std::string& text, const SubmissionContext& context) {
  auto [application, wrong] = fronts::read_application(text);
  auto service = fronts::service_of(application, context.of_pool(application.spec.pool).application);
  FieldErrors errors = api::joined(std::move(wrong), service ? FieldErrors{} : service.error());
  if (!errors.empty()) return tl::unexpected(std::move(errors));
  return Submission{.kind = objects::Kind::application,
                    .metadata = std::move(application.metadata),
                    .spec = api::write(application.spec),
                    .form = std::move(service->spec),
                    .warnings = std::move(service->warnings)};
}

Read read_pool(const std::string& text, const SubmissionContext&) {
  auto pool = fronts::read_pool(text);
  if (!pool) return tl::unexpected(std::move(pool.error()));
  std::string spec = api::write(pool->spec);
  return Submission{.kind = objects::Kind::pool,
                    .metadata = std::move(pool->metadata),
                    .spec = std::move(spec),
                    .form = {},
                    .warnings = {}};
}

Read read_queue(const std::string& text, const SubmissionContext&) {
  auto queue = fronts::read_queue(text);
  if (!queue) return tl::unexpected(std::move(queue.error()));
  std::string spec = api::write(queue->spec);
  return Submission{.kind = objects::Kind::queue,
                    .metadata = std::move(queue->metadata),
                    .spec = std::move(spec),
                    .form = {},
                    .warnings = {}};
}

Read read_tariff(const std::string& text, const SubmissionContext&) {
  auto tariff = fronts::read_tariff(text);
  if (!tariff) return tl::unexpected(std::move(tariff.error()));
  std::string spec = api::write(tariff->spec);
  return Submission{.kind = objects::Kind::tariff,
                    .metadata = std::move(tariff->metadata),
                    .spec = std::move(spec),
                    .form = {},
                    .warnings = {}};
}

Read read_budget(const std::string& text, const SubmissionContext&) {
  auto budget = fronts::read_budget(text);
  if (!budget) return tl::unexpected(std::move(budget.error()));
  std::string spec = api::write(budget->spec);
  return Submission{.kind = objects::Kind::budget,
                    .metadata = std::move(budget->metadata),
                    .spec = std::move(spec),
                    .form = {},
                    .warnings = {}};
}

Read read_job(const std::string& text, const SubmissionContext&) {
  auto job = fronts::read_job(text);
  if (!job) return tl::unexpected(std::move(job.error()));
  std::string spec = api::write(job->spec);
  return Submission{.kind = objects::Kind::job,
                    .metadata = std::move(job->metadata),
                    .spec = std::move(spec),
                    .form = {},
                    .warnings = {}};
}

Read read_ray_cluster(const std::string& text, const SubmissionContext&) {
  auto cluster = fronts::read_ray_cluster(text);
  if (!cluster) return tl::unexpected(std::move(cluster.error()));
  std::string spec = api::write(cluster->spec);
  return Submission{.kind = objects::Kind::ray_cluster,
                    .metadata = std::move(cluster->metadata),
                    .spec = std::move(spec),
                    .form = {},
                    .warnings = {}};
}

Read read_node(const std::string& text, const SubmissionContext&) {
  auto node = api::read_all<objects::NodeDocument>(text, api::Reading::strict);
  if (!node) return tl::unexpected(std::move(node.error()));
  FieldErrors errors = fronts::check_metadata(node->metadata);
  auto labels = fronts::our_labels(node->metadata.labels, "metadata.labels");
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
    if (is_there) out.warnings.push_back(fmt::format("spec.{} has no effect here; a verb sets it", field));
  out.spec = api::write(objects::NodePatchSpec{
      .pool = spec.pool, .instance_type = spec.instance_type, .schedulable = spec.schedulable});
  return out;
}

Read read_eas(const std::string& text, const SubmissionContext& context) {
  auto eas = fronts::from_eas(text, context.of_pool(fronts::eas_pool(text)).eas);
  if (!eas) return tl::unexpected(std::move(eas.error()));
  if (FieldErrors errors = fronts::check(eas->service); !errors.empty())
    return tl::unexpected(std::move(errors));
  return of_service(std::move(eas->service), std::move(eas->warnings));
}

Read read_manifest(const std::string& text, const SubmissionContext&) {
  auto manifest = fronts::from_manifest(text);
  if (!manifest) return tl::unexpected(std::move(manifest.error()));
  return of_service(std::move(manifest->service), std::move(manifest->warnings));
}

// A document of another system is kept byte for byte.
void keep_written(const std::string& written, Submission& submission) {
  submission.form.source.document = written;
  submission.spec = api::write(submission.form);
}

using Reader = Read (*)(const std::string&, const SubmissionContext&);

// Returns a text at the top of the JSON document; empty: it has none.
std::string top_text(const std::string& text, const char* field) {
  const auto document = api::parse(text);
  return document ? fronts::text_member(*document, field) : "";
}
std::string kind_in(const std::string& text) { return top_text(text, "kind"); }

Read refuse_kind(const std::string& text, const SubmissionContext&) {
  const std::string kind = kind_in(text);
  std::vector<std::string_view> known;
  for (const objects::KindText& one : objects::kinds) known.push_back(one.kind);
  return tl::unexpected(
      FieldErrors{{.field = "kind",
                   .value = kind,
                   .sentence = fmt::format(
                       "kind: {}; there are {}, and manifests of kind Pod, "
                       "Deployment and StatefulSet",
                       kind.empty() ? "it is absent" : fmt::format("'{}' is not a kind", kind.substr(0, 80)),
                       fmt::join(known, ", "))}});
}

// A document of another API may have a kind of the same name, such as Job, and none of our fields.
Read refuse_version(const std::string& text, const SubmissionContext&) {
  const std::string version = top_text(text, "apiVersion");
  return tl::unexpected(FieldErrors{
      {.field = "apiVersion",
       .value = version,
       .sentence = fmt::format("apiVersion: {}; a {} of Carve has {}",
                               version.empty() ? "it is absent" : fmt::format("'{}'", version.substr(0, 80)),
                               kind_in(text), objects::api_version)}});
}

constexpr std::pair<objects::Kind, Reader> readers[] = {{objects::Kind::service, read_service},
                                                        {objects::Kind::application, read_application},
                                                        {objects::Kind::pool, read_pool},
                                                        {objects::Kind::node, read_node},
                                                        {objects::Kind::queue, read_queue},
                                                        {objects::Kind::job, read_job},
                                                        {objects::Kind::tariff, read_tariff},
                                                        {objects::Kind::budget, read_budget},
                                                        {objects::Kind::ray_cluster, read_ray_cluster}};

// Returns the reader of a document of ours, by its kind.
Reader reader_of_kind(const std::string& text) {
  const std::string kind = kind_in(text);
  for (const auto& [value, reader] : readers) {
    if (objects::text_of(value).kind != kind) continue;
    const bool checks_version = reader == read_service || reader == read_application;  // Beside their fields.
    return checks_version || top_text(text, "apiVersion") == objects::api_version ? reader : refuse_version;
  }
  return refuse_kind;
}

Reader reader_of(const std::string& text, std::string_view dialect) {
  if (dialect == "eas") return read_eas;
  if (dialect == "carve") return reader_of_kind(text);
  if (dialect != "auto") return read_manifest;
  if (fronts::is_eas(text)) return read_eas;
  if (fronts::is_manifest(text)) return read_manifest;
  return reader_of_kind(text);
}

// A cluster's Service is no object here: it gives its port to the workload of its name.
Result<void, FieldErrors> give_port(const std::string& text, std::vector<Submission>& to) {
  const auto address = fronts::read_cluster_service(text);
  if (!address) return tl::unexpected(address.error());
  const auto workload = std::ranges::find_if(to, [&](const Submission& one) {
    return !one.form.source.dialect.empty() && one.metadata.name == address->name;
  });
  if (workload == to.end())
    return tl::unexpected(
        FieldErrors{{.field = "metadata.name",
                     .value = address->name,
                     .sentence = fmt::format(
                         "metadata.name: the Service '{}' has the name of no Deployment, StatefulSet or "
                         "Pod before it in these documents",
                         address->name.substr(0, 80))}});
  workload->form.port = address->port;
  workload->spec = api::write(workload->form);
  return {};
}

using Documents = std::vector<fronts::SourceDocument>;

// Adds the document, or the items of a list: of Kubernetes (kind: List), or as `carve get -o yaml` prints it.
void add_items(fronts::SourceDocument document, size_t number, Documents& out, FieldErrors& errors) {
  const auto list = api::parse(document.json);
  const bool has_items = list && list->is_object() && list->contains("items") && (*list)["items"].is_array();
  const bool is_list = has_items && (!list->contains("kind") || (*list)["kind"] == "List");
  if (!is_list) return out.push_back(std::move(document));
  for (const api::Json& item : (*list)["items"]) {
    if (!item.is_object())
      return errors.push_back(
          {.field = "items",
           .value = "",
           .sentence = fmt::format("document {}: items: a list has objects alone", number)});
    std::string json = item.dump(-1, ' ', /*ensure_ascii=*/false, api::Json::error_handler_t::replace);
    out.push_back({.json = json, .written = json});
  }
}

// Returns the documents of the text, in place of each list its items.
Result<Documents, FieldErrors> objects_in(std::string_view text) {
  auto documents = fronts::source_documents_of(text);
  if (!documents) return documents;
  Documents out;
  FieldErrors errors;
  for (size_t i = 0; i < documents->size() && errors.empty(); ++i)
    add_items(std::move((*documents)[i]), i + 1, out, errors);
  if (errors.empty() && out.size() > fronts::max_documents)
    errors.push_back({.field = "",
                      .value = "",
                      .sentence = fmt::format("there are more than {} objects; apply them in parts",
                                              fronts::max_documents)});
  if (!errors.empty()) return tl::unexpected(std::move(errors));
  return out;
}

}  // namespace

Result<std::vector<Submission>, FieldErrors> read_submissions(std::string_view text, std::string_view dialect,
                                                              const SubmissionContext& context) {
  const auto documents = objects_in(text);
  if (!documents) return tl::unexpected(documents.error());
  std::vector<Submission> out;
  FieldErrors errors;
  for (size_t i = 0; i < documents->size(); ++i) {
    const std::string& one = (*documents)[i].json;
    const Reader reader = reader_of(one, dialect);
    FieldErrors wrong;
    if (dialect == "auto" && fronts::is_cluster_service(one)) {
      if (auto given = give_port(one, out); !given) wrong = std::move(given.error());
    } else if (auto read = reader(one, context)) {
      if (reader == read_eas || reader == read_manifest) keep_written((*documents)[i].written, *read);
      out.push_back(std::move(*read));
    } else {
      wrong = std::move(read.error());
    }
    for (api::FieldError& error : wrong) {
      if (documents->size() > 1) error.sentence = fmt::format("document {}: {}", i + 1, error.sentence);
      if (errors.size() < api::max_field_errors) errors.push_back(std::move(error));
    }
  }
  if (!errors.empty()) return tl::unexpected(std::move(errors));
  if (out.empty())
    return tl::unexpected(FieldErrors{{.field = "", .value = "", .sentence = "there is no document"}});
  return out;
}

}  // namespace carve::controller
