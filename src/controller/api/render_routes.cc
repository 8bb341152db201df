#include "controller/api/render_routes.h"

#include "controller/api/job_routes.h"
#include "controller/api/planning.h"
#include "controller/api/query.h"
#include "controller/objects/job_form.h"
#include "render/manifests.h"

namespace carve::controller {

http::Response render_documents(const Call& call) {
  const auto query = parse_query(call.request.query, {"dialect"});
  if (!query) return refuse(query.error());
  auto read = posted_submissions(call, *query);
  if (!read) return std::move(read.error());
  api::Rendered out;
  api::FieldErrors errors;
  for (const Submission& one : *read) {
    const std::string_view kind = objects::text_of(one.kind).kind;
    if (is_queued(one.kind)) {
      auto manifests = rendered_job(call, one);
      if (!manifests) return std::move(manifests.error());
      out.manifests += (out.manifests.empty() ? "" : "---\n") + manifests->text;
      out.warnings.insert(out.warnings.end(), manifests->warnings.begin(), manifests->warnings.end());
      continue;
    }
    if (!objects::text_of(one.kind).is_workload) {
      errors.push_back(
          {.field = "kind",
           .value = std::string(kind),
           .message = fmt::format(
               "kind: {} '{}' cannot be rendered; only services, applications, jobs and Ray clusters can",
               kind, one.metadata.name)});
      continue;
    }
    auto manifests = render::manifests_of(one.metadata, one.form);
    if (!manifests) {
      errors.insert(errors.end(), manifests.error().begin(), manifests.error().end());
      continue;
    }
    out.manifests += (out.manifests.empty() ? "" : "---\n") + manifests->text;
    out.warnings.insert(out.warnings.end(), one.warnings.begin(), one.warnings.end());
    out.warnings.insert(out.warnings.end(), manifests->warnings.begin(), manifests->warnings.end());
  }
  return errors.empty() ? document(out) : refuse(std::move(errors));
}

}  // namespace carve::controller
