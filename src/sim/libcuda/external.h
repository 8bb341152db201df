// Memory that another interface made (Vulkan, OpenGL, DirectX), imported by its descriptor. Nothing here
// makes such memory, so any file or memfd that can be mapped and is long enough stands for it: its bytes are
// the memory's, and the device's memory is counted for the process that imports it, in whole blocks. A
// descriptor of memory that this driver exported is counted already, and import keeps it alive.
//
// It goes back when it is destroyed and all buffers and arrays that were mapped onto it are freed.
#pragma once

#include "sim/libcuda/process.h"

namespace carve::sim {

// Frees a buffer that was mapped onto external memory; work that uses it is over.
CUresult free_external(uint64_t address);
// The context is going, with what it imported.
void forget_externals(CUctx_st&);

}  // namespace carve::sim
