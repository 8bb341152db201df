// Which devices a program in a slice sees: what was granted, less what its starter had hidden from itself
// with CUDA_VISIBLE_DEVICES, in the order of that list. The list is read as NVIDIA's driver reads it (CUDA
// programming guide, "CUDA Environment Variables"): indexes of the machine or beginnings of UUIDs that fit
// one device; what stands behind the first word that names none is not seen; a device named twice makes the
// whole list mean nothing.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace carve::node {

// `machine` holds the UUID of each device of the machine at its index, `granted` those of the slice in its
// order; texts as NVML writes them. `list` is the starter's variable, nothing where it had none.
std::vector<std::string> visible_devices(std::span<const std::string> machine,
                                         std::span<const std::string> granted,
                                         std::optional<std::string_view> list);

}  // namespace carve::node
