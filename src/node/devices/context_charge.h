// What one context takes of a device: between 100 and 600 MiB, by device and driver, so it is measured, once.
//
// A child process (this program again, with --measure-context) creates a context and waits; what NVML then
// says the child holds is the figure. It is kept in STATE/context-charges by device and driver version, since
// it changes with nothing else. A measurement takes about 0.5 s on hardware; after 10 s it is given up.
#pragma once

#include <string>

#include "node/devices/nvml.h"

namespace carve::node {

// `libcuda`: the driver to open in the child. Failure: what the child or NVML said.
Outcome<Bytes> measure_context(Nvml& nvml, const Device& device, const std::string& libcuda);

// As above, from the cache in `state` where it knows the device and driver.
Outcome<Bytes> context_charge(Nvml& nvml, const Device& device, const std::string& libcuda,
                              const std::string& state);

// The child: makes a context on the device, says "ready" on stdout and waits for the end of stdin.
int measure_context_child(const char* libcuda, const char* uuid);

}  // namespace carve::node
