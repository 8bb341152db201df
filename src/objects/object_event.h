// The events of objects: GET /v1/services/NAME/events, GET /v1/events. There is one for each object (by its
// uid) and reason. A repetition raises its count and replaces its message.
#pragma once

#include "core/word.h"
#include "objects/object.h"
#include "wire/api/json.h"

namespace carve::objects {

enum class EventType : uint8_t { normal, warning };

// The reason of an event. The list is closed, so the number of events per object is bounded.
enum class EventReason : uint8_t {
  // Any object, by a user.
  created,
  changed,
  deleting,
  deleted,
  // Services and applications.
  scaled,
  stopped,
  started,
  restart_requested,
  undone,
  revised,
  resized,
  placement_refused,
  replica_created,
  replica_started,
  replica_ready,
  replica_not_ready,
  replica_failed,
  replica_ended,
  rollout_completed,
  progress_deadline_exceeded,
  autoscaled,
  step_failed,
  // Services, applications and jobs.
  orphan_adopted,
  orphan_ended,
  // Nodes.
  node_starting,
  node_running,
  node_stopped,
  cordoned,
  uncordoned,
  drain_requested,
  drained,
  stop_requested,
  start_requested,
  restarted,
  labels_changed,
  policy_changed,
  memory_unit_changed,
  device_unhealthy,
  device_healthy,
  // Node pools.
  slicing_available,
  slicing_unavailable,
  labels_drifted,
  // Jobs.
  cancel_requested,
  admitted,
  requeued,
  pod_failed,
  job_succeeded,
  job_failed,
  job_cancelled,
  job_lost,
  budget_reached,
  // Nodes of a Kubernetes cluster.
  usage_read_failed,
  usage_read_resumed,
  usage_refused,
  ledger_shortened,
  ledger_replaced,
};

}  // namespace carve::objects

template <>
struct carve::Words<carve::objects::EventType> {
  static constexpr const char* kind = "type of an event";
  static constexpr std::string_view words[] = {"Normal", "Warning"};
};

template <>
struct carve::Words<carve::objects::EventReason> {
  static constexpr const char* kind = "reason of an event";
  static constexpr std::string_view words[] = {"Created",
                                               "Changed",
                                               "Deleting",
                                               "Deleted",
                                               "Scaled",
                                               "Stopped",
                                               "Started",
                                               "RestartRequested",
                                               "Undone",
                                               "Revised",
                                               "Resized",
                                               "PlacementRefused",
                                               "ReplicaCreated",
                                               "ReplicaStarted",
                                               "ReplicaReady",
                                               "ReplicaNotReady",
                                               "ReplicaFailed",
                                               "ReplicaEnded",
                                               "RolloutCompleted",
                                               "ProgressDeadlineExceeded",
                                               "Autoscaled",
                                               "StepFailed",
                                               "OrphanAdopted",
                                               "OrphanEnded",
                                               "NodeStarting",
                                               "NodeRunning",
                                               "NodeStopped",
                                               "Cordoned",
                                               "Uncordoned",
                                               "DrainRequested",
                                               "Drained",
                                               "StopRequested",
                                               "StartRequested",
                                               "Restarted",
                                               "LabelsChanged",
                                               "PolicyChanged",
                                               "MemoryUnitChanged",
                                               "DeviceUnhealthy",
                                               "DeviceHealthy",
                                               "SlicingAvailable",
                                               "SlicingUnavailable",
                                               "LabelsDrifted",
                                               "CancelRequested",
                                               "Admitted",
                                               "Requeued",
                                               "PodFailed",
                                               "JobSucceeded",
                                               "JobFailed",
                                               "JobCancelled",
                                               "JobLost",
                                               "BudgetReached",
                                               "UsageReadFailed",
                                               "UsageReadResumed",
                                               "UsageRefused",
                                               "LedgerShortened",
                                               "LedgerReplaced"};
};

namespace carve::objects {

inline constexpr size_t event_reasons = std::size(Words<EventReason>::words);
static_assert(event_reasons == static_cast<size_t>(EventReason::ledger_replaced) + 1);

// Returns whether an operator or the object's owner should look at it.
constexpr bool is_warning(EventReason reason) {
  using enum EventReason;
  return reason == placement_refused || reason == replica_not_ready || reason == replica_failed ||
         reason == progress_deadline_exceeded || reason == step_failed || reason == orphan_adopted ||
         reason == orphan_ended || reason == node_stopped || reason == device_unhealthy ||
         reason == slicing_unavailable || reason == labels_drifted || reason == requeued ||
         reason == pod_failed || reason == job_failed || reason == job_lost || reason == budget_reached ||
         reason == usage_read_failed || reason == usage_refused || reason == ledger_shortened ||
         reason == ledger_replaced;
}

struct ObjectEvent {
  std::string kind;  // Kind of the object: "Service"
  std::string namespace_;
  std::string name;
  std::string uid;       // Identifies the object among all that had this name; empty if unknown.
  Word<EventType> type;  // "Normal" or "Warning"
  EventReason reason = EventReason::created;
  std::string message;  // Message of the last time.
  std::string caller;   // Whose request caused the last time: "root"; empty for the controller itself.
  uint64_t count = 0;
  std::string first_at;
  std::string last_at;
};

// Ordered by their last time.
struct ObjectEventList {
  std::vector<ObjectEvent> items;
};

}  // namespace carve::objects

CARVE_DECLARE_DOCUMENT(objects::ObjectEventList)
