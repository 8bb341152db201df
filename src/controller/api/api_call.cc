#include "controller/api/api_call.h"

namespace carve::controller {

http::Response refuse(FailureKind kind, std::string detail, unsigned status) {
  api::Problem problem = api::problem_of(kind, std::move(detail));
  if (status != 0) problem.status = status;
  return {problem.status, "application/problem+json", api::write(problem)};
}

http::Response refuse(api::FieldErrors errors) {
  api::Problem problem{.type = "carve:invalid", .title = "invalid document", .status = 422};
  problem.detail = errors.empty() ? "the document is invalid" : errors.front().sentence;
  for (size_t i = 1; i < errors.size(); ++i) problem.reasons.push_back(errors[i].sentence);
  problem.errors = std::move(errors);
  return {problem.status, "application/problem+json", api::write(problem)};
}

}  // namespace carve::controller
