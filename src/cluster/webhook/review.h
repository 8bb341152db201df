// An AdmissionReview and its answer (admission.k8s.io/v1; Kubernetes' documentation "Dynamic Admission
// Control"), for the webhooks of any kind of object.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wire/api/field_error.h"
#include "wire/api/json_value.h"

namespace carve::cluster {

inline constexpr size_t max_review_bytes = 8 << 20;  // etcd's limit of an object is 1.5 MB; a review has two.

inline constexpr unsigned unprocessable = 422, unavailable = 503;

struct Review {
  std::string uid;
  std::string operation;   // "CREATE"
  std::string name_space;  // Empty: the object has none.
  api::Json object;        // Null if there is none: of a DELETE.
  api::Json old_object;    // Null if there is none: of a CREATE.
};

// Fails with a sentence if the text is no review.
Result<Review, std::string> read_review(std::string_view json);

// Each returns the answer's document. The patch of `accept` makes `after` of `before`.
std::string accept(const std::string& uid, const api::Json& before, const api::Json& after,
                   const std::vector<std::string>& warnings);
std::string accept(const std::string& uid);
std::string refuse(const std::string& uid, unsigned status, const std::string& message);

// Returns the sentences of all errors in one text.
std::string message_of(const api::FieldErrors&);

}  // namespace carve::cluster
