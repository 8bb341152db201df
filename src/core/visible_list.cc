#include "core/visible_list.h"

#include <algorithm>
#include <array>

#include "base/device_list.h"

namespace carve {
namespace {

using UuidBytes = std::array<uint8_t, 16>;

// Returns the bytes of "GPU-0102...".
UuidBytes bytes_of(std::string_view text) {
  UuidBytes out = {};
  size_t digits = 0;
  for (const char c : text.substr(std::min<size_t>(text.size(), 4))) {
    const int digit = device_list::hex_digit(c);
    if (digit < 0 || digits == 2 * out.size()) continue;
    out[digits / 2] |= static_cast<uint8_t>(digits % 2 == 0 ? digit << 4 : digit);
    ++digits;
  }
  return out;
}

}  // namespace

std::vector<std::string> visible_devices(std::span<const std::string> machine,
                                         std::span<const std::string> granted,
                                         std::optional<std::string_view> list) {
  if (!list) return {granted.begin(), granted.end()};
  std::vector<UuidBytes> uuids;
  for (const std::string& uuid : machine) uuids.push_back(bytes_of(uuid));
  const DeviceList named = read_device_list(std::string(*list).c_str(), static_cast<unsigned>(uuids.size()),
                                            [&](unsigned i) { return uuids[i].data(); });
  if (named.names_one_twice) return {};
  std::vector<std::string> seen;
  for (const uint8_t device : std::span(named.devices, named.count))
    if (std::ranges::count(granted, machine[device]) != 0) seen.push_back(machine[device]);
  return seen;
}

}  // namespace carve
