// The devices that a program in a slice sees: the granted devices, without those that its environment hides
// with CUDA_VISIBLE_DEVICES, in the order of that list. Numbers in the list are the node's device indexes,
// and the list is parsed as NVIDIA's driver does (base/device_list.h). If a device is named twice, the whole
// list is empty.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace carve {

// `machine` has the UUID of each device of the node at its index; `granted` has the UUIDs of the slice's
// devices in its order. Both are written as NVML writes them. `list` is the variable's value, or no value if
// it is not set.
std::vector<std::string> visible_devices(std::span<const std::string> machine,
                                         std::span<const std::string> granted,
                                         std::optional<std::string_view> list);

}  // namespace carve
