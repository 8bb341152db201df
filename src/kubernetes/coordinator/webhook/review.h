// An AdmissionReview and its response (admission.k8s.io/v1; Kubernetes' documentation "Dynamic Admission
// Control"), for webhooks of any kind of object.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wire/api/field_error.h"
#include "wire/api/json_value.h"

namespace carve::kubernetes::coordinator {

inline constexpr size_t max_review_bytes = 8 << 20;  // etcd limits an object to 1.5 MB; a review has two.

inline constexpr unsigned forbidden = 403, unprocessable = 422, unavailable = 503;

struct Review {
  std::string uid;
  std::string operation;   // "CREATE"
  std::string name_space;  // Empty if the object has none.
  api::Json object;        // Null if absent, as in a DELETE.
  api::Json old_object;    // Null if absent, as in a CREATE.
};

// Parses a review. Fails with a message.
Result<Review, std::string> read_review(std::string_view json);

// Each returns the response document. The patch of `accept` transforms `before` into `after`.
std::string accept(const std::string& uid, const api::Json& before, const api::Json& after,
                   const std::vector<std::string>& warnings);
std::string accept(const std::string& uid);
std::string refuse(const std::string& uid, unsigned status, const std::string& message);

// Returns the messages of all errors in one text.
std::string message_of(const api::FieldErrors&);

}  // namespace carve::kubernetes::coordinator
