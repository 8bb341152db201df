// CUDA_VISIBLE_DEVICES in a document. Its indexes count the devices of the program's slice.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace carve::objects {

// Returns why the variable would leave the program without a device; empty if it leaves one or is absent.
// `devices` is the number of the slice's devices, 0 if there is no slice.
std::string visible_devices_problem(const std::map<std::string, std::string>& env, uint32_t devices);

}  // namespace carve::objects
