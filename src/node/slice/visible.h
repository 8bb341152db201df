// The devices that a program in a slice sees: the granted devices, less those that its environment hid with
// CUDA_VISIBLE_DEVICES, in the order of that list. The list is read as NVIDIA's driver reads it (CUDA
// programming guide, "CUDA Environment Variables"). Its words are indexes of the node or prefixes of UUIDs
// that match one device. Words after the first one that names no device are ignored. A device that is named
// twice makes the whole list empty.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace carve::node {

// `machine` holds the UUID of each device of the node at its index; `granted` holds those of the slice in its
// order. Both are texts as NVML writes them. `list` is the variable's value, or no value if it is not set.
std::vector<std::string> visible_devices(std::span<const std::string> machine,
                                         std::span<const std::string> granted,
                                         std::optional<std::string_view> list);

}  // namespace carve::node
