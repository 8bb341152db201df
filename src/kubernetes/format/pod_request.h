// Annotation carve.dev/request of a pod: the requests of its containers, as given and as numbers. The webhook
// writes it when the pod is created, and it never changes. One line of JSON:
//
//   {"v":1,"dialect":"ack","given":{"web":{"aliyun.com/gpu-mem":"16"}},
//    "containers":{"web":{"memory_bytes":2147483648,"unit":134217728,"units":16}},"cpu":4000}
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/amounts.h"
#include "kubernetes/format/annotation.h"

namespace carve::kubernetes {

inline constexpr const char* request_annotation = "carve.dev/request";
inline constexpr uint32_t request_version = 1;

// Label of a pod: the account that pays for its slices. The webhook copies the namespace's label of the same
// name; if neither has it, the namespace is the account.
inline constexpr const char* account_label = "carve.dev/account";

// The slice of a container.
struct RequestedSlice {
  Amounts amounts;                // The memory includes the bytes of requested units.
  std::optional<uint64_t> unit;   // Bytes of a memory unit, if the memory was requested in units.
  std::optional<uint32_t> units;  // Over all devices.
};

// Returns the bytes over all devices, or no value if they depend on the device.
inline std::optional<uint64_t> total_memory(const Amounts& amounts) {
  if (amounts.parts.empty()) {
    if (!amounts.memory_bytes) return std::nullopt;
    return *amounts.memory_bytes * amounts.devices;
  }
  uint64_t out = 0;
  for (const Part& part : amounts.parts) {
    if (!part.memory_bytes) return std::nullopt;
    out += *part.memory_bytes;
  }
  return out;
}
// Returns the sum of the basis points over all devices.
inline uint64_t total_share(const Amounts& amounts) {
  uint64_t out = uint64_t{amounts.share_bp.value_or(0)} * amounts.devices;
  for (const Part& part : amounts.parts) out += part.share_bp.value_or(0);
  return out;
}

struct PodRequest {
  uint32_t v = request_version;
  std::string dialect;
  std::map<std::string, std::map<std::string, std::string>>
      given;  // The limits by container, exactly as given.
  std::map<std::string, RequestedSlice> containers;
  uint64_t cpu = 0;                        // Thousandths of a core that the containers request.
  std::optional<int32_t> priority;         // From the pod's class; absent if unknown.
  std::optional<std::string> application;  // uid of the object that controls the pod.
};

inline Result<PodRequest, std::string> read_request(std::string_view text) {
  return read_annotation<PodRequest>(request_annotation, text, request_version);
}

}  // namespace carve::kubernetes
