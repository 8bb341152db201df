// Annotation carve.dev/request of a pod: what its containers asked for and what that is in numbers. The
// webhook writes it when the pod is created, and it never changes. One line of JSON:
//
//   {"v":1,"dialect":"ack","given":{"web":{"aliyun.com/gpu-mem":"16"}},
//    "containers":{"web":{"memory":2147483648,"devices":1,"unit":134217728,"units":16}},"cpu":4000}
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/slice.h"
#include "wire/kube/annotation.h"

namespace carve::kube {

inline constexpr const char* request_annotation = "carve.dev/request";
inline constexpr uint32_t request_version = 1;

// The slice of a container. Amounts are of each device.
struct SliceAmounts {
  std::optional<uint64_t> memory;     // Bytes.
  std::optional<uint32_t> memory_bp;  // Part of the device's usable memory.
  std::optional<uint32_t> share_bp;
  uint32_t devices = 1;
  std::optional<bool> exclusive;  // Whole devices.
  std::optional<uint64_t> unit;   // Bytes of a memory unit, if the memory was asked for in units.
  std::optional<uint32_t> units;  // Over all devices.
  std::optional<Isolation> isolation;
  std::optional<Policy> policy;
  std::optional<LatencyClass> latency_class;
  std::optional<Strategy> strategy;
  std::optional<std::vector<std::string>> models;
  std::optional<std::vector<std::string>> device_uuids;
  std::optional<uint64_t> spill;  // Bytes.
};

struct PodRequest {
  uint32_t v = request_version;
  std::string dialect;
  std::map<std::string, std::map<std::string, std::string>>
      given;  // The limits, by container, word for word.
  std::map<std::string, SliceAmounts> containers;
  uint64_t cpu = 0;                        // Thousandths of a core that the containers request.
  std::optional<int32_t> priority;         // The pod's, from its class. Absent: it was not known.
  std::optional<std::string> application;  // uid of the object that controls the pod.
};

inline Result<PodRequest, std::string> read_request(std::string_view text) {
  return read_annotation<PodRequest>(request_annotation, text, request_version);
}

}  // namespace carve::kube
