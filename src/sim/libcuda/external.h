// Memory that another interface made (Vulkan, OpenGL, DirectX), imported by its descriptor. No code here
// makes such memory, so any file or memfd that can be mapped and is long enough replaces it. The file's bytes
// are the memory's bytes, and the importing process counts the device memory, in whole blocks. If the
// descriptor is of memory that this driver exported, the memory is counted already, and the import keeps it
// alive.
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
