// An error in a field of a document.
#pragma once

#include <string>
#include <vector>

namespace carve::api {

struct FieldError {
  std::string field;    // "spec.gpu.memory". Empty for the document itself.
  std::string value;    // As in the document, cut to one line. Empty if the field is missing or unknown.
  std::string message;  // The whole message, including the field and the value.

  friend bool operator==(const FieldError&, const FieldError&) = default;
};
using FieldErrors = std::vector<FieldError>;
inline constexpr size_t max_field_errors = 32;  // Further errors of a document are not reported.

// Returns the errors from reading a document, followed by those from checking the fields that could be read.
// An error of a check is dropped if its field, a part of it or an enclosing field could not be read, because
// the field then has its default.
FieldErrors joined(FieldErrors reading, const FieldErrors& checks);

}  // namespace carve::api
