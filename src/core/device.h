// One physical GPU as quotas see it. Native memory is what the driver reports; reserved is what the
// virtualisation keeps back (the driver's own part, and room for growth that no call asks for); quotas and
// bills count against the rest, usable. On an A10: 23028 MiB native, 22731 MiB usable.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace carve {

// "GPU-" and 8-4-4-4-12 hexadecimal digits, as NVML and nvidia-smi print it (nvmlDeviceGetUUID); 16 bytes, as
// cuDeviceGetUuid gives them.
struct Uuid {
  std::array<uint8_t, 16> bytes{};

  friend bool operator==(const Uuid&, const Uuid&) = default;
  friend auto operator<=>(const Uuid&, const Uuid&) = default;
};
Result<Uuid> parse_uuid(std::string_view text);
std::string text(const Uuid&);

struct Device {
  Uuid uuid;
  unsigned index = 0;  // NVML's order on this machine: how people name it.
  std::string name;    // "NVIDIA A10"
  Bytes native;
  Bytes reserved;
  bool migrates = false;  // Managed memory may exceed it: CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS.

  Bytes usable() const { return minus(native, reserved); }
};

}  // namespace carve
