// Checks CUDA_VISIBLE_DEVICES in a document. Its indexes count the devices of the program's slice.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace carve::objects {

// Returns why the variable would leave the program without a device. Empty if the variable selects a device
// or is absent. `devices` is the number of the slice's devices, or 0 without a slice.
std::string visible_devices_problem(const std::map<std::string, std::string>& env, uint32_t devices);

}  // namespace carve::objects
