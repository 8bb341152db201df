// Texts and JSON that the steps of ClusterReconciler share.
#pragma once

#include <string>
#include <vector>

#include "controller/kubernetes/json_members.h"
#include "controller/kubernetes/workload_objects.h"
#include "kubernetes/api/answers.h"
#include "kubernetes/api/api_client.h"
#include "objects/object.h"
#include "wire/api/field_error.h"
#include "wire/api/json.h"
#include "wire/api/json_value.h"

namespace carve::controller {

inline std::string dumped(const api::Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/false, api::Json::error_handler_t::replace);
}

inline std::string message_of(const kubernetes::ApiAnswer& answer) {
  const std::string message = kubernetes::read_status(answer.body).message;
  return (message.empty() ? answer.problem : message).substr(0, 1000);
}

inline std::string message_of(const api::FieldErrors& errors) {
  std::string out;
  for (const api::FieldError& error : errors) out += (out.empty() ? "" : "; ") + error.message;
  return out.substr(0, 2000);
}

// Returns the mark of the document from which an object was made (workload_objects.h). Empty if it has none.
inline std::string mark_of(const api::Json& made) {
  return text_at(member(member(made, "metadata"), "annotations"), applied_annotation);
}

// Returns a status with these conditions only.
inline api::Json conditions_json(const std::vector<objects::Condition>& conditions) {
  api::Json out = api::Json::object();
  out["conditions"] = api::Json::array();
  for (const objects::Condition& one : conditions)
    if (auto json = api::parse(api::write(one))) out["conditions"].push_back(std::move(*json));
  return out;
}

}  // namespace carve::controller
