#include "controller/api/api_call.h"

#include <algorithm>

namespace carve::controller {

http::Response refuse(FailureKind kind, std::string detail, unsigned status) {
  api::Problem problem = api::problem_of(kind, std::move(detail));
  if (status != 0) problem.status = status;
  return {problem.status, "application/problem+json", api::write(problem)};
}

http::Response refuse_as(std::string type, std::string detail, const std::vector<std::string>& blocked_by) {
  std::string title = type.substr(type.find(':') + 1);
  std::ranges::replace(title, '-', ' ');
  const api::Problem problem{
      .type = std::move(type), .title = std::move(title), .status = 409, .detail = std::move(detail)};
  std::string body = api::write(problem);
  if (!blocked_by.empty()) {
    std::string names;
    for (const std::string& name : blocked_by) names += (names.empty() ? "" : ",") + api::quoted(name);
    body.insert(body.size() - 1, fmt::format(R"(,"blockedBy":[{}])", names));
  }
  return {problem.status, "application/problem+json", body};
}

http::Response refuse(api::FieldErrors errors) {
  api::Problem problem{.type = "carve:invalid", .title = "invalid document", .status = 422};
  problem.detail = errors.empty() ? "the document is invalid" : errors.front().message;
  for (size_t i = 1; i < errors.size(); ++i) problem.reasons.push_back(errors[i].message);
  problem.errors = std::move(errors);
  return {problem.status, "application/problem+json", api::write(problem)};
}

}  // namespace carve::controller
