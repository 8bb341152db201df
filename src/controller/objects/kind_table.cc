#include "controller/objects/kind_table.h"

#include "controller/objects/document_readers.h"
#include "controller/objects/kind_events.h"
#include "controller/objects/stored_check.h"
#include "objects/application.h"
#include "objects/budget_object.h"
#include "objects/job_object.h"
#include "objects/node_object.h"
#include "objects/pool_object.h"
#include "objects/queue_object.h"
#include "objects/ray_cluster_object.h"
#include "objects/rules/cluster_check.h"
#include "objects/rules/job_check.h"
#include "objects/rules/pool_check.h"
#include "objects/rules/queue_check.h"
#include "objects/tariff/budget_check.h"
#include "objects/tariff/tariff_check.h"
#include "objects/tariff_object.h"
#include "wire/api/json_schema.h"
#include "wire/api/problem.h"

namespace carve::controller {
namespace {

using objects::Kind;

// The type of a document's status; Nothing if it has none.
template <class Document>
struct StatusOf {
  using Type = api::Nothing;
};
template <class Document>
  requires requires(Document document) { document.status; }
struct StatusOf<Document> {
  using Type = decltype(Document::status);
};

// Reads a document of a kind whose reader has no warnings.
template <Kind kind, auto reader>
Result<Submission, api::FieldErrors> read_plain(const std::string& text, const SubmissionContext&) {
  auto document = reader(text);
  if (!document) return tl::unexpected(std::move(document.error()));
  return Submission{.kind = kind,
                    .metadata = std::move(document->metadata),
                    .spec = std::move(document->spec),
                    .form = {},
                    .warnings = {}};
}

template <class Document>
constexpr KindRow row(Kind kind, DocumentReader read_document) {
  return {.kind = kind,
          .read_spec = TypedJson::read<decltype(Document::spec)>,
          .read_status = TypedJson::read<typename StatusOf<Document>::Type>,
          .read_document = read_document,
          .schema = api::schema<Document>};
}

// A kind without anything special: `reader` is the function of its rules file.
template <Kind kind, class Document, auto reader>
constexpr KindRow plain_row() {
  return row<Document>(kind, read_plain<kind, reader>);
}

constexpr KindRow with_events(KindRow row, decltype(KindRow::made) made,
                              decltype(KindRow::add_changes) changes,
                              const char* deleted = KindRow().deleted) {
  row.made = made;
  row.add_changes = changes;
  row.deleted = deleted;
  return row;
}

constexpr KindRow with_check(KindRow row, decltype(KindRow::has_valid_spec) check) {
  row.has_valid_spec = check;
  return row;
}

constexpr const char *programs_ended = "its programs have ended", *replicas_ended = "its replicas have ended";

// The rows are in the order of the enumeration.
constexpr KindRow table[] = {
    with_check(with_events(row<objects::Service>(Kind::service, read_service), made_workload,
                           add_workload_events, replicas_ended),
               is_valid_service),
    with_check(with_events(row<objects::Application>(Kind::application, read_application), made_workload,
                           add_workload_events, replicas_ended),
               is_valid_application),
    with_events(row<objects::Node>(Kind::node, read_node), made_node, add_node_events),
    with_events(plain_row<Kind::pool, objects::Pool, objects::read_pool>(), made_pool, add_pool_events),
    plain_row<Kind::queue, objects::Queue, objects::read_queue>(),
    with_events(plain_row<Kind::job, objects::Job, objects::read_job>(), made_job, add_job_events,
                programs_ended),
    with_check(plain_row<Kind::tariff, objects::Tariff, objects::read_tariff>(), is_valid_tariff),
    with_events(plain_row<Kind::budget, objects::Budget, objects::read_budget>(), nullptr, add_budget_events),
    with_events(plain_row<Kind::ray_cluster, objects::RayCluster, objects::read_ray_cluster>(), made_job,
                add_job_events, programs_ended),
};

static_assert(objects::has_row_for_each_kind(table));

}  // namespace

const KindRow& row_of(Kind kind) { return table[static_cast<size_t>(kind)]; }

}  // namespace carve::controller
