// The devices that a program in a slice sees: the granted devices, less those that its environment hid with
// CUDA_VISIBLE_DEVICES, in the order of that list. The list's numbers are the node's device indexes, and it
// is parsed as NVIDIA's driver does (base/device_list.h). If a device is named twice, the whole list is
// empty.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace carve {

// `machine` holds the UUID of each device of the node at its index; `granted` holds those of the slice in its
// order. Both are texts as NVML writes them. `list` is the variable's value, or no value if it is not set.
std::vector<std::string> visible_devices(std::span<const std::string> machine,
                                         std::span<const std::string> granted,
                                         std::optional<std::string_view> list);

}  // namespace carve
