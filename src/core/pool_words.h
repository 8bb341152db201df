// The closed sets of words in pools, queues and tolerations.
#pragma once

#include <cstdint>

#include "core/words.h"

namespace carve {

enum class PoolType : uint8_t { eas, lingjun, public_group, ecs, vci };
template <>
struct Words<PoolType> {
  static constexpr const char* kind = "type of a pool";
  static constexpr std::string_view words[] = {"eas", "lingjun", "public", "ecs", "vci"};
};

// Whether a pool grants slices without a compute share.
enum class BestEffortRule : uint8_t { allow, refuse };
template <>
struct Words<BestEffortRule> {
  static constexpr const char* kind = "rule for best-effort slices";
  static constexpr std::string_view words[] = {"allow", "refuse"};
};

// The effects of taints, as in Kubernetes.
enum class TaintEffect : uint8_t { no_schedule, prefer_no_schedule, no_execute };
template <>
struct Words<TaintEffect> {
  static constexpr const char* kind = "effect of a taint";
  static constexpr std::string_view words[] = {"NoSchedule", "PreferNoSchedule", "NoExecute"};
};

// The operators of tolerations, as in Kubernetes.
enum class TolerationOperator : uint8_t { equal, exists };
template <>
struct Words<TolerationOperator> {
  static constexpr const char* kind = "operator of a toleration";
  static constexpr std::string_view words[] = {"Equal", "Exists"};
};

// The GPU of a queue's jobs: no device, whole devices or parts of devices.
enum class QueueGpu : uint8_t { none, gpu, mgpu };
template <>
struct Words<QueueGpu> {
  static constexpr const char* kind = "GPU of a queue";
  static constexpr std::string_view words[] = {"none", "gpu", "mgpu"};
};

enum class QueueBilling : uint8_t { on_demand, prepaid };
template <>
struct Words<QueueBilling> {
  static constexpr const char* kind = "billing of a queue";
  static constexpr std::string_view words[] = {"onDemand", "prepaid"};
};

}  // namespace carve
