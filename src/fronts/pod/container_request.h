// What one container of a pod asks for: one slice.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/slice.h"
#include "core/words.h"

namespace carve::fronts {

// Whose words a pod uses.
enum class Dialect : uint8_t { carve, ack, vke, hami, nvidia };

}  // namespace carve::fronts

namespace carve {
template <>
struct Words<fronts::Dialect> {
  static constexpr const char* kind = "dialect";
  static constexpr std::string_view words[] = {"carve", "ack", "vke", "hami", "nvidia"};
};
}  // namespace carve

namespace carve::fronts {

struct ContainerRequest {
  // Of each device, one of the three; none with `exclusive`.
  std::optional<uint64_t> memory_bytes;
  std::optional<uint32_t> memory_units;  // In the memory unit of the node or the cluster.
  std::optional<uint32_t> memory_bp;     // Part of the device's usable memory.
  std::optional<uint32_t> share_bp;      // Of each device; absent: best effort.
  uint32_t devices = 1;
  bool exclusive = false;  // Whole devices.
  std::optional<Isolation> isolation;
  std::optional<Policy> policy;
  std::optional<LatencyClass> latency;
  std::optional<Strategy> strategy;
  std::vector<std::string> models;        // Allowed ones, as the driver names them; empty: any.
  std::vector<std::string> device_uuids;  // Allowed ones; empty: any.
  uint64_t spill_bytes = 0;               // Per device, in host memory.

  friend bool operator==(const ContainerRequest&, const ContainerRequest&) = default;
};

}  // namespace carve::fronts
