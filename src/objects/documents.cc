// The functions that read and write the documents of this folder's headers.
#include "objects/application.h"
#include "objects/budget_object.h"
#include "objects/job_object.h"
#include "objects/node_object.h"
#include "objects/object_event.h"
#include "objects/pool_object.h"
#include "objects/queue_object.h"
#include "objects/ray_cluster_object.h"
#include "objects/revision.h"
#include "objects/service_object.h"
#include "objects/tariff_object.h"

CARVE_DEFINE_DOCUMENT(objects::ApplicationSpec)
CARVE_DEFINE_DOCUMENT(objects::Application)
CARVE_DEFINE_DOCUMENT(objects::BudgetSpec)
CARVE_DEFINE_DOCUMENT(objects::BudgetStatus)
CARVE_DEFINE_DOCUMENT(objects::Budget)
CARVE_DEFINE_DOCUMENT(objects::JobSpec)
CARVE_DEFINE_DOCUMENT(objects::JobStatus)
CARVE_DEFINE_DOCUMENT(objects::Job)
CARVE_DEFINE_DOCUMENT(objects::NodeSpec)
CARVE_DEFINE_DOCUMENT(objects::NodeStatus)
CARVE_DEFINE_DOCUMENT(objects::Node)
CARVE_DEFINE_DOCUMENT(objects::NodeDocument)
CARVE_DEFINE_DOCUMENT(objects::NodePatchSpec)
CARVE_DEFINE_DOCUMENT(objects::NodePatch)
CARVE_DEFINE_DOCUMENT(objects::NodeList)
CARVE_DEFINE_DOCUMENT(objects::ObjectEventList)
CARVE_DEFINE_DOCUMENT(objects::PoolSpec)
CARVE_DEFINE_DOCUMENT(objects::Slicing)
CARVE_DEFINE_DOCUMENT(objects::PoolStatus)
CARVE_DEFINE_DOCUMENT(objects::Pool)
CARVE_DEFINE_DOCUMENT(objects::QueueSpec)
CARVE_DEFINE_DOCUMENT(objects::QueueStatus)
CARVE_DEFINE_DOCUMENT(objects::Queue)
CARVE_DEFINE_DOCUMENT(objects::RayClusterSpec)
CARVE_DEFINE_DOCUMENT(objects::RayCluster)
CARVE_DEFINE_DOCUMENT(objects::RevisionList)
CARVE_DEFINE_DOCUMENT(objects::UndoRequest)
CARVE_DEFINE_DOCUMENT(objects::ServiceSpec)
CARVE_DEFINE_DOCUMENT(objects::ServiceStatus)
CARVE_DEFINE_DOCUMENT(objects::Service)
CARVE_DEFINE_DOCUMENT(objects::TariffSpec)
CARVE_DEFINE_DOCUMENT(objects::Tariff)
