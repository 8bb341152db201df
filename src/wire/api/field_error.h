// One error of a document, by its field.
#pragma once

#include <string>
#include <vector>

namespace carve::api {

struct FieldError {
  std::string field;     // "spec.gpu.memory"; empty: the document itself.
  std::string value;     // As the document has it, cut to a line; empty: a field is missing or unknown.
  std::string sentence;  // Whole: it names the field and the value.

  friend bool operator==(const FieldError&, const FieldError&) = default;
};
using FieldErrors = std::vector<FieldError>;
inline constexpr size_t max_field_errors = 32;  // Later errors of a document are not reported.

// Returns the errors of reading a document, and those of checking what could be read. A check of a field that
// could not be read, of a part of it or of what it is part of, says nothing: the field has its default.
FieldErrors joined(FieldErrors reading, const FieldErrors& checks);

}  // namespace carve::api
