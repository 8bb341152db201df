#include "controller/objects/submission.h"

#include "fronts/documents.h"
#include "fronts/pod/manifest.h"
#include "fronts/pool_check.h"
#include "fronts/service_terms.h"
#include "wire/api/json.h"
#include "wire/api/json_value.h"

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
  auto service = api::read_all<objects::Service>(text, api::Reading::strict);
  if (!service) return tl::unexpected(std::move(service.error()));
  if (FieldErrors errors = fronts::check(*service); !errors.empty()) return tl::unexpected(std::move(errors));
  return of_service(std::move(*service), {});
}

Read read_application(const std::string& text, const SubmissionContext& context) {
  auto application = fronts::read_application(text);
  if (!application) return tl::unexpected(std::move(application.error()));
  auto service = fronts::service_of(*application, context.application);
  if (!service) return tl::unexpected(std::move(service.error()));
  return Submission{.kind = objects::Kind::application,
                    .metadata = std::move(application->metadata),
                    .spec = api::write(application->spec),
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

Read read_eas(const std::string& text, const SubmissionContext& context) {
  auto eas = fronts::from_eas(text, context.eas);
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

using Reader = Read (*)(const std::string&, const SubmissionContext&);

std::string kind_in(const std::string& text) {
  const auto document = api::parse(text);
  const bool has_kind =
      document && document->is_object() && document->contains("kind") && (*document)["kind"].is_string();
  return has_kind ? (*document)["kind"].get<std::string>() : "";
}

Read refuse_kind(const std::string& text, const SubmissionContext&) {
  const std::string kind = kind_in(text);
  std::vector<std::string_view> known;
  for (const objects::KindText& one : objects::kinds)
    if (one.value != objects::Kind::node) known.push_back(one.kind);  // Nodes are those of the command line.
  return tl::unexpected(FieldErrors{
      {.field = "kind",
       .value = kind,
       .sentence = fmt::format("kind: '{}' is not a kind; there are {}, and manifests of kind Pod, "
                               "Deployment and StatefulSet",
                               kind.substr(0, 80), fmt::join(known, ", "))}});
}

// Returns the reader of a document of ours, by its kind.
Reader reader_of_kind(const std::string& text) {
  const std::string kind = kind_in(text);
  if (kind == objects::text_of(objects::Kind::application).kind) return read_application;
  if (kind == objects::text_of(objects::Kind::pool).kind) return read_pool;
  return kind == objects::text_of(objects::Kind::service).kind ? read_service : refuse_kind;
}

Reader reader_of(const std::string& text, std::string_view dialect) {
  if (dialect == "eas") return read_eas;
  if (dialect == "carve") return reader_of_kind(text);
  if (dialect != "auto") return read_manifest;
  if (fronts::is_eas(text)) return read_eas;
  if (fronts::is_manifest(text)) return read_manifest;
  return reader_of_kind(text);
}

}  // namespace

Result<std::vector<Submission>, FieldErrors> read_submissions(std::string_view text, std::string_view dialect,
                                                              const SubmissionContext& context) {
  const auto documents = fronts::documents_of(text);
  if (!documents) return tl::unexpected(documents.error());
  std::vector<Submission> out;
  FieldErrors errors;
  for (size_t i = 0; i < documents->size(); ++i) {
    const std::string& one = (*documents)[i];
    auto read = reader_of(one, dialect)(one, context);
    if (read) {
      out.push_back(std::move(*read));
      continue;
    }
    for (api::FieldError& error : read.error()) {
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
