// What only the CUDA driver can tell of a device: what one context takes of it (between 100 and 600 MiB, by
// device and driver, so it is measured, once), and whether managed memory may exceed it.
//
// A child process (this program again, with --measure-context) creates a context and waits; what NVML then
// says the child holds is the figure. Both are kept in STATE/context-charges by device and driver version,
// since they change with nothing else. A measurement takes about 0.5 s on hardware; after 10 s it is given
// up.
#pragma once

#include <string>

#include "node/devices/nvml.h"

namespace carve::node {

struct CudaFacts {
  Bytes context;
  bool migrates = false;  // Device::migrates
};

// `libcuda`: the driver to open in the child. Failure: what the child or NVML said.
Outcome<CudaFacts> measure_context(Nvml& nvml, const Device& device, const std::string& libcuda);

// As above, from the cache in `state` where it knows the device and driver.
Outcome<CudaFacts> cuda_facts(Nvml& nvml, const Device& device, const std::string& libcuda,
                              const std::string& state);

// The child: makes a context on the device, says "ready" and whether managed memory migrates ("1", "0") on
// stdout and waits for the end of stdin.
int measure_context_child(const char* libcuda, const char* uuid);

}  // namespace carve::node
