// The phases and states in statuses, apart from those that decisions share (core/job_words.h,
// core/node_phase.h).
#pragma once

#include <cstdint>

#include "core/word.h"

namespace carve::objects {

// The phase of a service or an application.
enum class WorkloadPhase : uint8_t {
  waiting,
  running,
  updating,
  stopped,
  succeeded,
  failed,
  crash_loop_back_off,
  image_pull_failed,
  deleting,
};

enum class ReplicaState : uint8_t {
  starting,
  running,
  ready,
  crash_loop_back_off,
  image_pull_failed,
  stopping,
  succeeded,
  failed,
};

// The state of a pod of a job.
enum class PodState : uint8_t { waiting, granted, running, stopping, succeeded, failed, lost, ended };

}  // namespace carve::objects

template <>
struct carve::Words<carve::objects::WorkloadPhase> {
  static constexpr const char* kind = "phase of a workload";
  static constexpr std::string_view words[] = {"Waiting",          "Running",         "Updating",
                                               "Stopped",          "Succeeded",       "Failed",
                                               "CrashLoopBackOff", "ImagePullFailed", "Deleting"};
};

template <>
struct carve::Words<carve::objects::ReplicaState> {
  static constexpr const char* kind = "state of a replica";
  static constexpr std::string_view words[] = {"Starting",        "Running",  "Ready",     "CrashLoopBackOff",
                                               "ImagePullFailed", "Stopping", "Succeeded", "Failed"};
};

template <>
struct carve::Words<carve::objects::PodState> {
  static constexpr const char* kind = "state of a pod";
  static constexpr std::string_view words[] = {"Waiting",   "Granted", "Running", "Stopping",
                                               "Succeeded", "Failed",  "Lost",    "Ended"};
};
