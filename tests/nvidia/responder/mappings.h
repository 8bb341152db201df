// Mappings of memory for the process and for devices: NV_ESC_RM_MAP_MEMORY, NV_ESC_RM_UNMAP_MEMORY,
// NV_ESC_RM_MAP_MEMORY_DMA, NV_ESC_RM_UNMAP_MEMORY_DMA, and the ioctls of nvidia-uvm.ko. Each function
// returns 0 or a negative errno.
#pragma once

#include <cstddef>
#include <cstdint>

namespace responder {

int answer_map(void* argument, size_t size);
int answer_unmap(void* argument, size_t size);
int answer_map_dma(void* argument, size_t size);
int answer_unmap_dma(void* argument, size_t size);
int answer_uvm(unsigned number, void* argument);

// What the next mmap() of a descriptor maps (nv_alloc_mapping_context() in the kernel module): a part of the
// memory file.
struct Pending {
  uint64_t offset, length;
};
// Returns false if nothing was announced for the descriptor.
bool take_pending(int file, Pending& pending);

}  // namespace responder
