// Device properties that the driver reports in addition to memory: readings of its sensors, and whether it is
// shared by means other than Carve.
#pragma once

#include <optional>

#include "core/words.h"

namespace carve {

// A field has no value if the driver does not report that reading.
struct DeviceReadings {
  std::optional<uint32_t> temperature_celsius;
  std::optional<uint32_t> power_milliwatts;
  std::optional<uint32_t> power_limit_milliwatts;
  std::optional<uint32_t> sm_clock_mhz;
  std::optional<uint32_t> memory_clock_mhz;
  std::optional<uint32_t> memory_busy_percent;    // Time in which device memory was read or written.
  std::optional<uint64_t> memory_reserved_bytes;  // Kept back by the driver.
  std::optional<uint64_t> energy_millijoules;     // Since the driver was loaded.

  friend bool operator==(const DeviceReadings&, const DeviceReadings&) = default;
};

// Why slices of the device are offered only as whole devices.
enum class DeviceMode : uint8_t {
  whole = 0,
  mig = 1,  // Partitioned by the hardware (Multi-Instance GPU).
  mps = 2,  // Programs use it through an MPS server, which the driver counts as one process.
};
template <>
struct Words<DeviceMode> {
  static constexpr const char* kind = "mode of a device";
  static constexpr std::string_view words[] = {"whole", "mig", "mps"};
};

}  // namespace carve
