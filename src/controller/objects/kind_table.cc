#include "controller/objects/kind_table.h"

#include "objects/application.h"
#include "objects/budget_object.h"
#include "objects/job_object.h"
#include "objects/node_object.h"
#include "objects/pool_object.h"
#include "objects/queue_object.h"
#include "objects/ray_cluster_object.h"
#include "objects/tariff_object.h"
#include "wire/api/problem.h"

namespace carve::controller {
namespace {

using objects::Kind;

template <class Spec, class Status>
constexpr KindRow row(Kind kind) {
  return {.kind = kind, .read_spec = TypedJson::read<Spec>, .read_status = TypedJson::read<Status>};
}

// The rows are in the order of the enumeration.
constexpr KindRow table[] = {
    row<objects::ServiceSpec, objects::ServiceStatus>(Kind::service),
    row<objects::ApplicationSpec, objects::ServiceStatus>(Kind::application),
    row<objects::NodeSpec, objects::NodeStatus>(Kind::node),
    row<objects::PoolSpec, objects::PoolStatus>(Kind::pool),
    row<objects::QueueSpec, objects::QueueStatus>(Kind::queue),
    row<objects::JobSpec, objects::JobStatus>(Kind::job),
    row<objects::TariffSpec, api::Nothing>(Kind::tariff),
    row<objects::BudgetSpec, objects::BudgetStatus>(Kind::budget),
    row<objects::RayClusterSpec, objects::JobStatus>(Kind::ray_cluster),
};

static_assert(objects::has_row_for_each_kind(table));

}  // namespace

const KindRow& row_of(Kind kind) { return table[static_cast<size_t>(kind)]; }

}  // namespace carve::controller
