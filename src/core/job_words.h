// The engines of jobs, the roles of their pods and their phases.
#pragma once

#include <cstdint>

#include "core/words.h"

namespace carve {

enum class JobEngine : uint8_t { spark, ray, custom };
template <>
struct Words<JobEngine> {
  static constexpr const char* kind = "engine";
  static constexpr std::string_view words[] = {"spark", "ray", "custom"};
};

enum class PodRole : uint8_t { driver, executor, head, worker, task };
template <>
struct Words<PodRole> {
  static constexpr const char* kind = "role of a pod";
  static constexpr std::string_view words[] = {"driver", "executor", "head", "worker", "task"};
};

enum class JobPhase : uint8_t {
  queued,
  starting,
  running,
  succeeded,
  failed,
  cancelled,
  lost,
  deleting,  // The job is being deleted, whatever its programs do.
};
template <>
struct Words<JobPhase> {
  static constexpr const char* kind = "phase of a job";
  static constexpr std::string_view words[] = {"Queued", "Starting",  "Running", "Succeeded",
                                               "Failed", "Cancelled", "Lost",    "Deleting"};
};

}  // namespace carve
