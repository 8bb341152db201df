// One physical GPU and its memory. The driver reports the native memory. Reserved memory is kept back for the
// driver itself and for growth that no call requests. The rest is usable memory, to which quotas and invoices
// refer. An A10 has 23028 MiB of native and 22731 MiB of usable memory.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace carve {

// A device's UUID: the 16 bytes that cuDeviceGetUuid returns. Its text is "GPU-" and 8-4-4-4-12 hexadecimal
// digits, as NVML (nvmlDeviceGetUUID) and nvidia-smi print it.
struct Uuid {
  std::array<uint8_t, 16> bytes{};

  friend bool operator==(const Uuid&, const Uuid&) = default;
  friend auto operator<=>(const Uuid&, const Uuid&) = default;
};
Result<Uuid> parse_uuid(std::string_view text);
std::string text(const Uuid&);

struct Device {
  Uuid uuid;
  unsigned index = 0;  // NVML's order on this node; users may give it in place of the UUID.
  std::string name;    // "NVIDIA A10"
  Bytes native;
  Bytes reserved;
  bool migrates = false;  // Managed memory may exceed the device:
                          // CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS.

  Bytes usable() const { return minus(native, reserved); }
};

}  // namespace carve
