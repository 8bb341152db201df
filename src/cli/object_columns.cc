#include "cli/object_columns.h"

#include "cli/bill.h"
#include "cli/jobs.h"
#include "cli/node_pools.h"
#include "core/utc.h"

namespace carve::cli {
namespace {

// The part that objects of every kind have.
struct AnyObject {
  objects::Metadata metadata;
};

ObjectCells heading_of(objects::Kind kind) {
  if (objects::text_of(kind).is_workload) return workload_heading();
  if (is_queue_or_job(kind)) return job_heading(kind);
  if (is_price(kind)) return price_heading(kind);
  return node_heading(kind);
}

Result<ObjectCells, std::string> cells_of(objects::Kind kind, const std::string& json) {
  if (objects::text_of(kind).is_workload) return workload_cells(json);
  if (is_queue_or_job(kind)) return job_cells(kind, json);
  if (is_price(kind)) return price_cells(kind, json);
  return node_cells(kind, json);
}

std::string age_of(const std::string& created_at, uint64_t now_ns) {
  constexpr size_t whole_seconds = sizeof("2026-11-01T08:30:00") - 1;
  const auto created = parse_utc("createdAt", created_at.substr(0, whole_seconds) + "Z");
  if (!created) return "-";
  const auto then = static_cast<uint64_t>(*created);
  return age(now_ns - std::min(now_ns, then));
}

}  // namespace

bool has_namespaces(objects::Kind kind) {
  return objects::text_of(kind).is_workload || kind == objects::Kind::job ||
         kind == objects::Kind::ray_cluster;
}

ObjectCells workload_heading() {
  return {{"NAME", "STATUS", "READY", "GPU", "REVISION", "RESTARTS", "ENDPOINT"}, {"ACCOUNT", "CREATED"}};
}

Result<ObjectCells, std::string> workload_cells(const std::string& json) {
  const auto s = api::read<objects::Service>(json, api::Reading::lenient);
  if (!s) return tl::unexpected(s.error());
  return ObjectCells{{harmless(s->metadata.name), or_dash(text(s->status.phase)),
                      fmt::format("{}/{}", s->status.ready_replicas, wanted_replicas(*s)),
                      or_dash(s->status.gpu), fmt::format("{}", s->status.revision),
                      fmt::format("{}", s->status.restarts), or_dash(s->status.endpoint)},
                     {or_dash(s->metadata.account), harmless(s->metadata.created_at)}};
}

std::vector<std::string> object_heading(objects::Kind kind, NamespaceColumn column, bool wide) {
  ObjectCells heading = heading_of(kind);
  if (column == NamespaceColumn::shown) heading.narrow.emplace_back("NAMESPACE");
  heading.narrow.emplace_back("AGE");
  if (wide) heading.narrow.insert(heading.narrow.end(), heading.wide.begin(), heading.wide.end());
  return heading.narrow;
}

Result<std::vector<std::string>, std::string> object_cells(objects::Kind kind, const std::string& json,
                                                           NamespaceColumn column, bool wide,
                                                           uint64_t now_ns) {
  auto cells = cells_of(kind, json);
  const auto any = api::read<AnyObject>(json, api::Reading::lenient);
  if (!cells) return tl::unexpected(cells.error());
  if (!any) return tl::unexpected(any.error());
  if (column == NamespaceColumn::shown) cells->narrow.push_back(harmless(any->metadata.namespace_));
  cells->narrow.push_back(age_of(any->metadata.created_at, now_ns));
  if (wide) cells->narrow.insert(cells->narrow.end(), cells->wide.begin(), cells->wide.end());
  return std::move(cells->narrow);
}

}  // namespace carve::cli
