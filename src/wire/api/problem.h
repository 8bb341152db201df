// Documents of the API, version 1: failures, and the empty document.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/failure.h"
#include "wire/api/field_error.h"
#include "wire/api/json.h"

namespace carve::api {

// RFC 9457: a failure, for programs (`type`, `status`) and for users (`title`, `detail`).
struct Problem {
  std::string type = "about:blank";   // "carve:already-exists", "carve:insufficient-capacity", ...; stable.
  std::string title;                  // The kind of failure, the same for each type.
  uint32_t status = 500;              // The HTTP status.
  std::string detail;                 // The failure in this case: the object, the value, and how to fix it.
  std::vector<std::string> reasons;   // One per device, if a request did not fit.
  std::optional<FieldErrors> errors;  // For a document with invalid fields (carve:invalid).
};

// Returns the problem for a failure of this kind.
inline Problem problem_of(FailureKind kind, std::string detail) {
  const FailureKindText as = shown(kind);
  return {.type = as.type, .title = as.title, .status = as.http_status, .detail = std::move(detail)};
}

// An empty body, in a request or a response.
struct Nothing {};

}  // namespace carve::api

CARVE_DECLARE_DOCUMENT(api::Problem)
CARVE_DECLARE_DOCUMENT(api::Nothing)
