// The functions that read and write the documents of this folder's headers.
#include "wire/api/allocations.h"
#include "wire/api/audit.h"
#include "wire/api/bill.h"
#include "wire/api/controller.h"
#include "wire/api/device.h"
#include "wire/api/doctor.h"
#include "wire/api/event.h"
#include "wire/api/identity.h"
#include "wire/api/limit.h"
#include "wire/api/metric_history.h"
#include "wire/api/node.h"
#include "wire/api/plan.h"
#include "wire/api/problem.h"
#include "wire/api/slice.h"

CARVE_DEFINE_DOCUMENT(api::Allocations)
CARVE_DEFINE_DOCUMENT(api::MetricHistory)
CARVE_DEFINE_DOCUMENT(api::AuditEntry)
CARVE_DEFINE_DOCUMENT(api::AuditList)
CARVE_DEFINE_DOCUMENT(api::Limit)
CARVE_DEFINE_DOCUMENT(api::LimitChange)
CARVE_DEFINE_DOCUMENT(api::LimitList)
CARVE_DEFINE_DOCUMENT(api::Identity)
CARVE_DEFINE_DOCUMENT(api::WhoAmI)
CARVE_DEFINE_DOCUMENT(api::Access)
CARVE_DEFINE_DOCUMENT(api::BillLine)
CARVE_DEFINE_DOCUMENT(api::Bill)
CARVE_DEFINE_DOCUMENT(api::ControllerVersion)
CARVE_DEFINE_DOCUMENT(api::TokenRequest)
CARVE_DEFINE_DOCUMENT(api::TokenMade)
CARVE_DEFINE_DOCUMENT(api::TokenList)
CARVE_DEFINE_DOCUMENT(api::SignInCode)
CARVE_DEFINE_DOCUMENT(api::SignInRequest)
CARVE_DEFINE_DOCUMENT(api::SessionView)
CARVE_DEFINE_DOCUMENT(api::EasChanges)
CARVE_DEFINE_DOCUMENT(api::Rendered)
CARVE_DEFINE_DOCUMENT(api::JobParameters)
CARVE_DEFINE_DOCUMENT(api::AppliedList)
CARVE_DEFINE_DOCUMENT(api::DeviceList)
CARVE_DEFINE_DOCUMENT(api::Check)
CARVE_DEFINE_DOCUMENT(api::Diagnosis)
CARVE_DEFINE_DOCUMENT(api::Event)
CARVE_DEFINE_DOCUMENT(api::EventList)
CARVE_DEFINE_DOCUMENT(api::Version)
CARVE_DEFINE_DOCUMENT(api::ProcessSlice)
CARVE_DEFINE_DOCUMENT(api::Node)
CARVE_DEFINE_DOCUMENT(api::NodeChange)
CARVE_DEFINE_DOCUMENT(api::Explanation)
CARVE_DEFINE_DOCUMENT(api::ConsolidationPlan)
CARVE_DEFINE_DOCUMENT(api::Problem)
CARVE_DEFINE_DOCUMENT(api::Nothing)
CARVE_DEFINE_DOCUMENT(api::SliceRequest)
CARVE_DEFINE_DOCUMENT(api::SliceChange)
CARVE_DEFINE_DOCUMENT(api::Slice)
CARVE_DEFINE_DOCUMENT(api::SliceList)
CARVE_DEFINE_DOCUMENT(api::EnterRequest)
CARVE_DEFINE_DOCUMENT(api::Entered)
CARVE_DEFINE_DOCUMENT(api::ContainerMount)
CARVE_DEFINE_DOCUMENT(api::SlotFiles)
CARVE_DEFINE_DOCUMENT(api::ContainerStarted)
CARVE_DEFINE_DOCUMENT(api::ClaimPods)
