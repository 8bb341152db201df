// Measures three properties of a device that only the CUDA driver knows: the size of a context, whether
// managed memory may exceed the device, and the steps in which managed memory moves to the device. A context
// takes between 100 and 600 MiB, depending on device and driver, so it is measured once.
//
// A child process (this program again, with --measure-context) creates a context and waits. The size is the
// additional memory in use on the device, because NVML does not list all of a context's memory for the
// process (9 MiB less on an H100). The results depend only on the device and the driver version and are
// stored for them in STATE/context-charges. A measurement takes about 0.5 s on hardware and is given up after
// 10 s.
#pragma once

#include <string>

#include "node/devices/nvml_library.h"

namespace carve::node {

struct CudaFacts {
  Bytes context;
  bool migrates = false;  // See Device::migrates.
  // The driver allocates device memory for managed memory in steps that all processes share. The first page
  // takes this much more than the block that is charged to a slice: 126 MiB on an H100, 0 on older devices.
  Bytes managed_step;
};

// Returns the bytes to charge for a context, given the bytes that NVML lists for its process and the bytes in
// use on the device before, with and after it.
Bytes whole_charge(Bytes listed, Bytes before, Bytes with_child, Bytes after);

// Measures now. The child opens the driver `libcuda`. Failures contain the message of the child or of NVML.
Outcome<CudaFacts> measure_context(Nvml& nvml, const Device& device, const std::string& libcuda);

// Returns the facts stored in `state` for the device and driver, or measures them.
Outcome<CudaFacts> cuda_facts(Nvml& nvml, const Device& device, const std::string& libcuda,
                              const std::string& state);

// The child process: creates a context on the device, then prints "ready" and whether managed memory migrates
// ("1" or "0"). After a line on stdin it moves a page of managed memory to the device and prints "managed".
// Then it waits for the end of stdin.
int measure_context_child(const char* libcuda, const char* uuid);

}  // namespace carve::node
