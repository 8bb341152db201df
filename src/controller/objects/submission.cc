#include "controller/objects/submission.h"

#include "fronts/documents.h"
#include "fronts/service_terms.h"
#include "wire/api/json.h"

namespace carve::controller {
namespace {

using api::FieldErrors;

Result<Submission, FieldErrors> read_ours(const std::string& text) {
  auto service = api::read_all<objects::Service>(text, api::Reading::strict);
  if (!service) return tl::unexpected(std::move(service.error()));
  if (FieldErrors errors = fronts::check(*service); !errors.empty()) return tl::unexpected(std::move(errors));
  return Submission{.service = std::move(*service), .warnings = {}};
}

Result<Submission, FieldErrors> read_eas(const std::string& text, const fronts::EasContext& context) {
  auto eas = fronts::from_eas(text, context);
  if (!eas) return tl::unexpected(std::move(eas.error()));
  if (FieldErrors errors = fronts::check(eas->service); !errors.empty())
    return tl::unexpected(std::move(errors));
  return Submission{.service = std::move(eas->service), .warnings = std::move(eas->warnings)};
}

}  // namespace

Result<std::vector<Submission>, FieldErrors> read_submissions(std::string_view text, std::string_view dialect,
                                                              const fronts::EasContext& context) {
  const auto documents = fronts::documents_of(text);
  if (!documents) return tl::unexpected(documents.error());
  std::vector<Submission> out;
  FieldErrors errors;
  for (size_t i = 0; i < documents->size(); ++i) {
    const std::string& one = (*documents)[i];
    const bool eas = dialect == "eas" || (dialect == "auto" && fronts::is_eas(one));
    auto read = eas ? read_eas(one, context) : read_ours(one);
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
