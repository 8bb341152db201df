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
#include "wire/api/json.h"

namespace carve::kube {

inline constexpr const char* request_annotation = "carve.dev/request";
inline constexpr uint32_t request_version = 1;
inline constexpr size_t max_annotation_bytes = 16 << 10;

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
  std::optional<std::string> application;  // uid of the object that controls the pod.
};

// Reads an annotation. Fails with a sentence if it has another version or a field that is not known.
inline Result<PodRequest, std::string> read_request(std::string_view text) {
  if (text.size() > max_annotation_bytes)
    return tl::unexpected(fmt::format("{} has {} bytes; it may have at most {}", request_annotation,
                                      text.size(), max_annotation_bytes));
  auto request = api::read<PodRequest>(text, api::Reading::strict);
  if (!request) return tl::unexpected(fmt::format("{}: {}", request_annotation, request.error()));
  if (request->v != request_version)
    return tl::unexpected(fmt::format("{} version {}: this program reads {}; upgrade it", request_annotation,
                                      request->v, request_version));
  return request;
}

}  // namespace carve::kube
