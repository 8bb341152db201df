// Which rule translated which field of a document: one table with a row for each field of each dialect that
// is translated. A row is reported if the document has the field, with the resulting value in the service.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "objects/service_object.h"
#include "wire/api/controller.h"

namespace carve::dialects {

// The translated document, as JSON, and the result.
struct TranslatedDocument {
  std::string_view dialect;  // "eas", "ack", "vke", "hami", "kubernetes"; "application"; "service".
  std::string_view source;
  const objects::Metadata& metadata;
  const objects::ServiceSpec& spec;
};

// Returns a row for each field that a rule translated, in the order of the table.
std::vector<api::TranslatedField> translation_of(const TranslatedDocument&);

// Returns the field of the document from which this field of the service was made, such as
// "metadata.gpu_core_percentage" for "spec.gpu.policy", or the field itself if there is none. A field within
// a known one keeps its end.
std::string field_in_source(std::string_view dialect, std::string_view source, std::string_view field);

}  // namespace carve::dialects
