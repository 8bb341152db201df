// Which rule translated which field of a document: one table with a row for each field of each dialect that
// becomes something else. A row is told if the document has the field, with what the service has instead.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wire/api/controller.h"
#include "wire/objects/service_object.h"

namespace carve::fronts {

// The document that was translated, as JSON, and what became of it.
struct TranslatedDocument {
  std::string_view dialect;  // "eas", "ack", "vke", "hami", "kubernetes"; "application"; "service".
  std::string_view source;
  const objects::Metadata& metadata;
  const objects::ServiceSpec& spec;
};

// Returns a row for each field that a rule translated, in the order of the table.
std::vector<api::TranslatedField> translation_of(const TranslatedDocument&);

}  // namespace carve::fronts
