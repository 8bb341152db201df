// Three facts about a device that only the CUDA driver reports: the size of a context, whether managed memory
// may exceed the device, and the steps in which managed memory moves to the device. A context takes between
// 100 and 600 MiB, by device and driver, so it is measured once.
//
// A child process (this program again, with --measure-context) creates a context and waits. The size is the
// additional memory that the device then holds: the driver keeps some of a context's memory outside of what
// NVML lists for the process (9 MiB on an H100). The facts are stored in STATE/context-charges by device and
// driver version, because they depend on nothing else. A measurement takes about 0.5 s on hardware and is
// given up after 10 s.
#pragma once

#include <string>

#include "node/devices/nvml_library.h"

namespace carve::node {

struct CudaFacts {
  Bytes context;
  bool migrates = false;  // Device::migrates
  // The driver allocates device memory for managed memory in steps that all processes share. The first page
  // takes this much more than the block that is charged to a slice: 126 MiB on an H100, 0 on older devices.
  Bytes managed_step;
};

// Returns the bytes to charge for a context, from those that NVML lists for its process and those of the
// whole device before, with and after it.
Bytes whole_charge(Bytes listed, Bytes before, Bytes with_child, Bytes after);

// Measures now. The child opens the driver `libcuda`. A failure has the child's or NVML's message.
Outcome<CudaFacts> measure_context(Nvml& nvml, const Device& device, const std::string& libcuda);

// Returns the stored facts if the device and driver are in `state`, else measures.
Outcome<CudaFacts> cuda_facts(Nvml& nvml, const Device& device, const std::string& libcuda,
                              const std::string& state);

// The child: creates a context on the device, prints "ready" and whether managed memory migrates ("1", "0")
// on stdout. On a line on stdin it moves a page of managed memory to the device and prints "managed". It then
// waits for the end of stdin.
int measure_context_child(const char* libcuda, const char* uuid);

}  // namespace carve::node
