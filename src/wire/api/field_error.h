// An error in a field of a document.
#pragma once

#include <string>
#include <vector>

namespace carve::api {

struct FieldError {
  std::string field;    // "spec.gpu.memory". Empty for the document itself.
  std::string value;    // As in the document, cut to a line. Empty if missing or unknown.
  std::string message;  // The whole message, including the field and the value.

  friend bool operator==(const FieldError&, const FieldError&) = default;
};
using FieldErrors = std::vector<FieldError>;
inline constexpr size_t max_field_errors = 32;  // Further errors of a document are not reported.

// Returns the errors of reading a document and those of checking what could be read. A check is dropped if
// its field, a part of it or an enclosing field could not be read, because the field then has its default.
FieldErrors joined(FieldErrors reading, const FieldErrors& checks);

}  // namespace carve::api
