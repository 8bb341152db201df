// Two facts about a device that only the CUDA driver reports: the size of one context, and whether managed
// memory may exceed the device. A context takes between 100 and 600 MiB, by device and driver, so it is
// measured once.
//
// A child process (this program again, with --measure-context) creates a context and waits; NVML then reports
// the child's memory, which is the size. Both facts are stored in STATE/context-charges by device and driver
// version, because they depend on nothing else. A measurement takes about 0.5 s on hardware and is given up
// after 10 s.
#pragma once

#include <string>

#include "node/devices/nvml_library.h"

namespace carve::node {

struct CudaFacts {
  Bytes context;
  bool migrates = false;  // Device::migrates
};

// Measures now. `libcuda` is the driver that the child opens. A failure has the child's or NVML's message.
Outcome<CudaFacts> measure_context(Nvml& nvml, const Device& device, const std::string& libcuda);

// Returns the stored facts if the device and driver are in `state`, else measures.
Outcome<CudaFacts> cuda_facts(Nvml& nvml, const Device& device, const std::string& libcuda,
                              const std::string& state);

// The child: creates a context on the device, prints "ready" and whether managed memory migrates ("1", "0")
// on stdout, and waits for the end of stdin.
int measure_context_child(const char* libcuda, const char* uuid);

}  // namespace carve::node
