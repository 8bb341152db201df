// Allocations and their addresses. A device pointer is an address in a window that is reserved and never
// accessible, so a program that dereferences it faults, as on hardware. Its bytes are at the same offset in a
// second window. The kernel commits that window page by page as copies and sets touch it, so a device of 80
// GiB costs only the memory that is written.
//
// The driver allocates whole blocks of 2 MiB. An allocation of 1 MiB or less is a piece of a block, in steps
// of 512 bytes. Such blocks belong to their context and are released with their last piece. Host allocations
// and managed memory are ordinary memory whose device address is their own.
#pragma once

#include <bitset>
#include <cstdint>
#include <memory>

#include "sim/libcuda/driver_state.h"
#include "sim/libcuda/shared.h"

namespace carve::sim {

enum class Memory : uint8_t {
  device,
  managed,
  host,
  registered,
  pool,
  graph,
  mapped,
  imported,
  array,
  code,
  variable,
  external
};

struct SmallBlock {
  uint64_t base = 0;
  std::bitset<memory_block_bytes / 512> taken;
  unsigned used = 0;
};

struct HeapRecord {
  uint64_t base = 0;
  uint64_t bytes = 0;   // As requested.
  uint64_t blocks = 0;  // Bytes taken from the device for this allocation only; 0 for a piece of a block.
  CUctx_st* context = nullptr;
  unsigned device = 0;
  Memory kind = Memory::device;
  unsigned flags = 0;
  unsigned long long id = 0;
  SmallBlock* small = nullptr;
  CUmemoryPool pool = nullptr;  // The pool from which it was allocated.
  unsigned access = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
};

bool heap_start();

// Takes a free range of device addresses, in whole blocks: at `wish` if that is free, otherwise anywhere.
// Returns 0 if there is none. The contents are lost when the range is released.
uint64_t heap_take_range(uint64_t bytes, uint64_t alignment = memory_block_bytes, uint64_t wish = 0);
void heap_give_range(uint64_t base, uint64_t bytes);

// Adds memory of another owner to the table: pools, mappings, imports.
void heap_record(HeapRecord);
// Removes the record that starts at `base`, if it is of that kind, and returns it.
bool heap_strike(uint64_t base, Memory kind, HeapRecord*);

CUresult heap_allocate(CUctx_st&, uint64_t bytes, uint64_t* base);
// Allocates an array. Up to 1 MiB it is a piece of a block that only arrays use, in steps of 64 KiB; larger
// arrays take whole blocks. `bytes` is a multiple of 64 KiB.
CUresult heap_allocate_array(CUctx_st&, uint64_t bytes, uint64_t* base);
// Allocates a module's code and variables, as pieces of blocks that only modules use, or as whole blocks.
CUresult heap_allocate_code(CUctx_st&, uint64_t bytes, uint64_t* base);
// Takes blocks of the device for a context, without addresses. Fails with CUDA_ERROR_OUT_OF_MEMORY if the
// device has no room.
CUresult heap_take_blocks(CUctx_st&, uint64_t bytes);
void heap_give_blocks(CUctx_st&, uint64_t bytes);
CUresult heap_allocate_managed(CUctx_st&, uint64_t bytes, unsigned flags, uint64_t* base);
CUresult heap_allocate_host(CUctx_st*, uint64_t bytes, unsigned flags, void** out);
CUresult heap_register_host(CUctx_st*, void* p, uint64_t bytes, unsigned flags);
// Frees the allocation that starts at `base` and has one of the two kinds.
CUresult heap_free(uint64_t base, Memory kind, Memory or_kind);

// Turns the block of a device allocation into a segment that other processes can open. Returns the segment
// and the offset of the allocation in it. This process must have no work on the device.
CUresult heap_share(uint64_t base, std::shared_ptr<Shared>*, uint64_t* offset);

// Uses the pages of a shared mapping as the contents of a range of device addresses from heap_take_range.
// Host memory can also be read at the address itself. Detaching leaves zeroed private pages.
bool heap_attach(uint64_t base, char* pages, uint64_t bytes, bool host);
void heap_detach(uint64_t base, uint64_t bytes);
// Sets the access of a mapping. A new mapping has no access.
void heap_set_access(uint64_t base, unsigned flags);

// Finds the allocation that contains the address. Returns false if there is none.
bool heap_find(uint64_t address, HeapRecord*);

// Returns the address at which this process can read and write [address, address + bytes): in the second
// window for device pointers, the address itself for host memory. Returns nullptr if a device range leaves
// its allocation (adjacent mappings count as one) or may not be accessed.
void* heap_bytes(uint64_t address, uint64_t bytes);
bool heap_is_device_address(uint64_t address);
// Returns the same for a device address that the caller has already checked.
char* heap_raw(uint64_t address);

// Closes memory of other processes that the context had opened (ipc.cc).
void close_imports(CUctx_st&);

// Removes all device memory of a destroyed context.
void heap_forget(CUctx_st&);

}  // namespace carve::sim
