// The memory of the pretended machine, and the map from GPU addresses to its bytes.
//
// All memory objects of the resource manager are parts of one sparse memory file, so that the driver can map
// each of them, and the channels' consumer can access every byte in the process. Pages are allocated when
// they are first written.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace responder {

enum class Place : uint8_t {
  video,    // NV01_MEMORY_LOCAL_USER: device memory.
  system,   // NV01_MEMORY_SYSTEM.
  foreign,  // NV01_MEMORY_SYSTEM_OS_DESCRIPTOR: pages that the process already has.
};

// A memory object. Handles, mappings and duplicates hold one reference each.
struct Memory {
  Place place;
  unsigned gpu;
  unsigned references;
  uint64_t size;    // Allocated size.
  uint64_t asked;   // Requested size, without rounding.
  uint64_t offset;  // Offset in the memory file, unless foreign.
  uint8_t* bytes;   // Address in the process.
  uint32_t attr;    // NVOS32_ATTR of the request.
};

// Each function returns an object with one reference, or null if the device or the file is full.
Memory* make_memory(Place place, unsigned gpu, uint64_t asked, uint64_t size);
Memory* make_foreign(unsigned gpu, void* bytes, uint64_t size);
Memory* share(Memory* memory);
void release(Memory* memory);

// Returns the memory file, which mmap() maps in place of a device file.
int memory_file();

// Returns the bytes of device memory in use.
uint64_t used_video(unsigned gpu);

// The map from GPU addresses to memory, for all devices together, because with unified addressing they do not
// overlap.
bool map_address(uint64_t address, uint64_t length, Memory* memory, uint64_t offset);
// Maps managed memory, for which the device uses the process's own pages.
bool map_managed(uint64_t address, uint64_t length);
// Announces that a pool of semaphores will be mapped at the address. It is in system memory and not in the
// log of requests.
void expect_pool(uint64_t address, uint64_t length);
// Drops the managed memory of pages that the process unmaps.
void unmap_managed(uint64_t address, uint64_t length);
void unmap_address(uint64_t address, uint64_t length);

// Returns the bytes at a GPU address, or null if the `length` bytes are not all in one mapping.
uint8_t* bytes_at(uint64_t address, uint64_t length);
// Returns how many bytes from the address on are in one mapping; 0 if the address is not mapped.
uint64_t mapped_from(uint64_t address);

}  // namespace responder
