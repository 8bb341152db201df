// Memory of another interface (Vulkan, OpenGL, DirectX), imported by its descriptor. The simulator cannot
// create such memory, so any file or memfd that can be mapped and is long enough takes its place. The file's
// bytes are the memory's bytes, and the device memory is counted for the importing process, in whole blocks.
// If this driver exported the descriptor, the memory is already counted, and the import only keeps it alive.
//
// The memory is released when it is destroyed and all buffers and arrays that were mapped onto it are freed.
#pragma once

#include "sim/libcuda/driver_state.h"

namespace carve::sim {

// Frees a buffer that was mapped onto external memory, after the work that uses it has ended.
CUresult free_external(uint64_t address);
// Removes the context's imports before the context is destroyed.
void forget_externals(CUctx_st&);

}  // namespace carve::sim
