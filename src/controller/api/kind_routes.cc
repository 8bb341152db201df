#include "controller/api/kind_routes.h"

#include <algorithm>
#include <array>

#include "controller/api/event_routes.h"
#include "controller/api/job_routes.h"
#include "controller/api/node_routes.h"
#include "controller/api/object_routes.h"
#include "controller/api/planning.h"
#include "controller/api/pool_routes.h"
#include "controller/api/workload_routes.h"

namespace carve::controller {
namespace {

using objects::Kind;

Outcome<void> always(const Call&, const std::string&) { return {}; }

// Texts of the kinds with replicas, which share their routes.
constexpr KindWords workload_words = {.article = "an",
                                      .noun = "object",
                                      .plural = "objects",
                                      .has_namespaces = true,
                                      .list = "Lists the objects of the kind in pages.",
                                      .remove = "Deletes an object when its programs have ended."};

constexpr KindWords job_words = {
    .article = "a",
    .noun = "job",
    .plural = "jobs",
    .has_namespaces = true,
    .list = "Lists the jobs in pages.",
    .apply = "Submits all jobs of the documents, or none.",
    .replace = "Replaces the labels and annotations of a job with those of the document.",
    .change = "Changes the labels and annotations of a job with a merge patch.",
    .remove = "Deletes a job when its programs have ended."};

constexpr KindWords cluster_words = {
    .article = "a",
    .noun = "Ray cluster",
    .plural = "Ray clusters",
    .has_namespaces = true,
    .replace = "Changes the numbers of workers of a Ray cluster to those in the document.",
    .change = "Changes the numbers of workers of a Ray cluster with a merge patch.",
    .remove = "Deletes a Ray cluster when its programs have ended."};

constexpr KindApi own_rows[] = {
    {.kind = Kind::service, .words = workload_words, .plan = planned_workload},
    {.kind = Kind::application, .words = workload_words, .plan = planned_workload},
    {.kind = Kind::node, .words = {"a", "node", "nodes"}, .plan = planned_node},
    {.kind = Kind::pool,
     .words = {"a", "node pool", "node pools"},
     .plan = planned_pool,
     .check_deletion = check_pool_deletion},
    {.kind = Kind::queue,
     .words = {.article = "a",
               .noun = "queue",
               .plural = "queues",
               .remove = "Deletes a queue without unfinished jobs."},
     .plan = planned_queue,
     .check_deletion = check_queue_deletion},
    {.kind = Kind::job, .words = job_words, .plan = planned_job},
    {.kind = Kind::ray_cluster, .words = cluster_words, .plan = planned_job},
};

constexpr KindApi plain_api(const objects::KindText& kind) {
  return {.kind = kind.value,
          .words = {"a", kind.singular, kind.plural},
          .plan = operators_object,
          .check_deletion = always};
}

// One row per kind, in the order of the enumeration.
constexpr auto table = [] {
  std::array<KindApi, std::size(objects::kinds)> out;
  for (const objects::KindText& kind : objects::kinds) out[static_cast<size_t>(kind.value)] = plain_api(kind);
  for (const KindApi& row : own_rows) out[static_cast<size_t>(row.kind)] = row;
  return out;
}();
static_assert(objects::has_row_for_each_kind(table));

std::string path_of(std::optional<Kind> kind, std::string_view rest = "") {
  return fmt::format("/v1/{}{}", kind ? objects::text_of(*kind).plural : "{kind}", rest);
}

std::string schema_of(std::optional<Kind> kind, std::string_view rest = "") {
  return fmt::format("{}{}", kind ? objects::text_of(*kind).kind : "Kind", rest);
}

const KindWords& words_of(std::optional<Kind> kind) { return kind ? api_of(*kind).words : workload_words; }

// Returns `text`, or `usual` if `text` is empty.
std::string or_usual(std::string_view text, std::string usual) {
  return text.empty() ? std::move(usual) : std::string(text);
}

}  // namespace

const KindApi& api_of(Kind kind) { return table[static_cast<size_t>(kind)]; }

bool is_plain(Kind kind) { return std::ranges::find(own_rows, kind, &KindApi::kind) == std::end(own_rows); }

std::vector<Route> object_routes(std::optional<Kind> kind) {
  const KindWords& words = words_of(kind);
  const std::string one = fmt::format("{} {}", words.article, words.noun);
  const std::string all = path_of(kind), each = path_of(kind, "/{}"), schema = schema_of(kind);
  const std::string query = words.has_namespaces ? "namespace" : "";
  return {
      {"GET", all, list_objects, or_usual(words.list, fmt::format("Lists the {}.", words.plural)),
       schema_of(kind, "List"), "", "namespace labelSelector limit continue", kind},
      {"POST", all, post_documents, or_usual(words.apply, "Applies all documents, or none."), "AppliedList",
       "any", "dialect dryRun explain diff create", kind},
      {"GET", each, get_object, fmt::format("Shows one {}.", words.noun), schema, "", query, kind},
      {"PUT", each, put_object,
       or_usual(words.replace, fmt::format("Replaces the spec of {} with that of the document.", one)),
       schema, schema, query, kind},
      {"PATCH", each, patch_object,
       or_usual(words.change, fmt::format("Changes fields of {} with a merge patch.", one)), schema, "any",
       query, kind},
      {"DELETE", each, delete_object, or_usual(words.remove, fmt::format("Deletes {}.", one)), schema, "",
       query, kind},
  };
}

Route events_route(std::optional<Kind> kind) {
  const KindWords& words = words_of(kind);
  return {"GET",
          path_of(kind, "/{}/events"),
          get_events,
          fmt::format("Lists the events of {} {}.", words.article, words.noun),
          "ObjectEventList",
          "",
          "namespace lives",
          kind};
}

Route logs_route(std::optional<Kind> kind) {
  const KindWords& words = words_of(kind);
  return {"GET",
          path_of(kind, "/{}/logs"),
          get_logs,
          fmt::format("Prints the output of {} {}'s programs.", words.article, words.noun),
          "text",
          "",
          "namespace role replica previous tail sinceSeconds follow plain timestamps",
          kind};
}

}  // namespace carve::controller
