#include "kubernetes/cli/translate.h"

#include <algorithm>

#include "dialects/pod/admission.h"
#include "dialects/pod/dialects.h"
#include "kubernetes/cli/claim_templates.h"
#include "kubernetes/cli/pod_documents.h"
#include "objects/error_list.h"
#include "yaml/documents.h"

namespace carve::kubernetes::cli {
namespace {

using api::Json;

// Returns one of Carve's limits that the text contains. Empty if it contains none.
std::string known_limit_in(std::string_view text) {
  for (const dialects::DialectRow& row : dialects::dialect_rows())
    if (row.dialect != dialects::Dialect::nvidia)
      for (const char* key : row.limits)
        if (text.find(fmt::format("\"{}\"", key)) != text.npos) return key;
  return "";
}

}  // namespace

Result<Translation, api::FieldErrors> translate(std::string_view manifests,
                                                const dialects::PodSettings& settings) {
  const auto documents = yaml::documents_of(manifests);
  if (!documents) return tl::unexpected(documents.error());
  Translation out;
  objects::ErrorList errors;
  for (const std::string& text : *documents) {
    auto document = api::parse(text);
    if (!document) {
      errors.add_message("", "", document.error());
      continue;
    }
    const std::vector<PodDocument> pods = pods_in(*document);
    for (const PodDocument& each : pods) {
      auto admitted = dialects::admit(*each.pod, settings);
      if (!admitted) {
        const std::string of = each.name.empty() ? "" : each.name + ": ";
        for (const api::FieldError& error : admitted.error())
          errors.add_message(error.field, error.value, of + error.message);
        continue;
      }
      *each.pod = std::move(admitted->pod);
      out.warnings.insert(out.warnings.end(), admitted->warnings.begin(), admitted->warnings.end());
    }
    if (const std::string key = known_limit_in(text); pods.empty() && !key.empty())
      out.warnings.push_back(fmt::format(
          "a document has {}, but its kind is unknown; the webhook translates its pods when they are created",
          key));
    out.documents.push_back(document->dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  if (!errors.empty()) return tl::unexpected(errors.all());
  return out;
}

Result<Translation, api::FieldErrors> translate_to_claims(std::string_view manifests,
                                                          const dialects::PodSettings& settings) {
  auto translated = translate(manifests, settings);
  if (!translated) return translated;
  Translation out{.documents = {}, .warnings = std::move(translated->warnings)};
  objects::ErrorList errors;
  const auto add = [&](const Json& document) {
    out.documents.push_back(document.dump(-1, ' ', false, Json::error_handler_t::replace));
  };
  for (const std::string& text : translated->documents) {
    auto document = api::parse(text);
    if (!document) continue;  // Always valid, because translate() wrote it.
    for (const PodDocument& each : pods_in(*document)) {
      const auto templates = use_claims(*each.pod, each.name);
      if (!templates) errors.add_message("", "", each.name + ": " + templates.error());
      if (templates)
        for (const Json& one : *templates) add(one);
    }
    add(*document);
  }
  if (!errors.empty()) return tl::unexpected(errors.all());
  return out;
}

}  // namespace carve::kubernetes::cli
