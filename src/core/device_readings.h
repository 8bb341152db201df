// What the driver reports of a device beside its memory: readings of its sensors, and whether it is shared by
// other means than Carve's.
#pragma once

#include <optional>

#include "core/words.h"

namespace carve {

// A field has no value if the driver does not report it.
struct DeviceReadings {
  std::optional<uint32_t> temperature_celsius;
  std::optional<uint32_t> power_milliwatts;
  std::optional<uint32_t> power_limit_milliwatts;
  std::optional<uint32_t> sm_clock_mhz;
  std::optional<uint32_t> memory_clock_mhz;

  friend bool operator==(const DeviceReadings&, const DeviceReadings&) = default;
};

// Slices are offered on whole devices only.
enum class DeviceMode : uint8_t {
  whole = 0,
  mig = 1,  // Partitioned by the hardware (Multi-Instance GPU).
  mps = 2,  // Programs reach it through an MPS server, in whose one process the driver counts all of them.
};
template <>
struct Words<DeviceMode> {
  static constexpr const char* kind = "mode of a device";
  static constexpr std::string_view words[] = {"whole", "mig", "mps"};
};

}  // namespace carve
