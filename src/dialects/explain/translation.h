// Shows which rule translated which field of a document. One table has a row for each translated field of
// each dialect. A row is returned if the document has the field, with the resulting value in the service.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "objects/service_object.h"
#include "wire/api/controller.h"

namespace carve::dialects {

// A translated document as JSON, and the result of its translation.
struct TranslatedDocument {
  std::string_view dialect;  // "eas", "ack", "vke", "hami", "kubernetes"; "application"; "service".
  std::string_view source;
  const objects::Metadata& metadata;
  const objects::ServiceSpec& spec;
};

// Returns a row for each field that a rule translated, in the order of the table.
std::vector<api::TranslatedField> translation_of(const TranslatedDocument&);

// Returns the field of the document that became this field of the service, such as
// "metadata.gpu_core_percentage" for "spec.gpu.policy". Returns the field itself if there is none. The end of
// a path below a known field is kept.
std::string field_in_source(std::string_view dialect, std::string_view source, std::string_view field);

}  // namespace carve::dialects
