#include "kubectl/translate.h"

#include <algorithm>

#include "fronts/documents.h"
#include "fronts/error_list.h"
#include "fronts/pod/admission.h"
#include "fronts/pod/dialects.h"
#include "kubectl/pod_documents.h"

namespace carve::kubectl {
namespace {

using api::Json;

// Returns a limit of ours that the text has; empty: it has none.
std::string known_limit_in(std::string_view text) {
  for (const fronts::DialectRow& row : fronts::dialect_rows())
    if (row.dialect != fronts::Dialect::nvidia)
      for (const char* key : row.limits)
        if (text.find(fmt::format("\"{}\"", key)) != text.npos) return key;
  return "";
}

}  // namespace

Result<Translation, api::FieldErrors> translate(std::string_view manifests,
                                                const fronts::PodSettings& settings) {
  const auto documents = fronts::documents_of(manifests);
  if (!documents) return tl::unexpected(documents.error());
  Translation out;
  fronts::ErrorList errors;
  for (const std::string& text : *documents) {
    auto document = api::parse(text);
    if (!document) {
      errors.add_sentence("", "", document.error());
      continue;
    }
    const std::vector<PodDocument> pods = pods_in(*document);
    for (const PodDocument& each : pods) {
      auto admitted = fronts::admit(*each.pod, settings);
      if (!admitted) {
        const std::string of = each.name.empty() ? "" : each.name + ": ";
        for (const api::FieldError& error : admitted.error())
          errors.add_sentence(error.field, error.value, of + error.sentence);
        continue;
      }
      *each.pod = std::move(admitted->pod);
      out.warnings.insert(out.warnings.end(), admitted->warnings.begin(), admitted->warnings.end());
    }
    if (const std::string key = known_limit_in(text); pods.empty() && !key.empty())
      out.warnings.push_back(fmt::format(
          "a document has {}, and its kind is not known here: the webhook translates its pods when they are "
          "created",
          key));
    out.documents.push_back(document->dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  if (!errors.empty()) return tl::unexpected(errors.all());
  return out;
}

}  // namespace carve::kubectl
