// Addresses. A device pointer is an address in one window that is reserved and never accessible: a program
// that dereferences it faults, as on hardware. Its bytes lie at the same offset in a second window, which the
// kernel commits page by page as copies and sets touch them: a device of 80 GiB costs what is really written.
//
// The driver hands out whole blocks of 2 MiB; an allocation of 1 MiB or less is a piece of a block, at steps
// of 512 bytes. Blocks of small pieces belong to their context and go back when the last piece does. Host
// allocations and managed memory are ordinary memory whose device address is their own.
#pragma once

#include <bitset>
#include <cstdint>
#include <memory>

#include "sim/libcuda/process.h"
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
  std::bitset<kBlock / 512> taken;
  unsigned used = 0;
};

struct Allocation {
  uint64_t base = 0;
  uint64_t bytes = 0;   // As asked for.
  uint64_t blocks = 0;  // Bytes taken from the device for it alone; 0 for a piece of a block.
  CUctx_st* context = nullptr;
  unsigned device = 0;
  Memory kind = Memory::device;
  unsigned flags = 0;
  unsigned long long id = 0;
  SmallBlock* small = nullptr;
  CUmemoryPool pool = nullptr;  // Where it came from.
  unsigned access = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
};

bool heap_start();

// A range of device addresses that nothing lies at yet, in whole blocks: at `wish` where that is free, else
// anywhere. 0: there is none. What lies there is forgotten when it is given back.
uint64_t heap_take_range(uint64_t bytes, uint64_t alignment = kBlock, uint64_t wish = 0);
void heap_give_range(uint64_t base, uint64_t bytes);

// The table itself, for memory that has another owner: pools, mappings, imports.
void heap_record(Allocation);
// Removes the record that starts at `base`, if it is of that kind, and tells what it was.
bool heap_strike(uint64_t base, Memory kind, Allocation*);

CUresult heap_allocate(CUctx_st&, uint64_t bytes, uint64_t* base);
// For an array: pieces of blocks of their own at steps of 64 KiB up to 1 MiB, else whole blocks. `bytes` is a
// multiple of 64 KiB.
CUresult heap_allocate_array(CUctx_st&, uint64_t bytes, uint64_t* base);
// For the code of a module and its variables: pieces of blocks of their own, else whole blocks.
CUresult heap_allocate_code(CUctx_st&, uint64_t bytes, uint64_t* base);
// Blocks of the device for a context, without addresses; CUDA_ERROR_OUT_OF_MEMORY when the device has no
// room.
CUresult heap_take_blocks(CUctx_st&, uint64_t bytes);
void heap_give_blocks(CUctx_st&, uint64_t bytes);
CUresult heap_allocate_managed(CUctx_st&, uint64_t bytes, unsigned flags, uint64_t* base);
CUresult heap_allocate_host(CUctx_st*, uint64_t bytes, unsigned flags, void** out);
CUresult heap_register_host(CUctx_st*, void* p, uint64_t bytes, unsigned flags);
// Frees what starts at `base` and is of one of the two kinds.
CUresult heap_free(uint64_t base, Memory kind, Memory or_kind);

// The block of an allocation of kind device as a segment that other processes can open, and where in it the
// allocation starts. The device has no work of this process.
CUresult heap_share(uint64_t base, std::shared_ptr<Shared>*, uint64_t* offset);

// Makes pages of a shared mapping the bytes of a range of device addresses, which it was given by
// heap_take_range; host memory can be read at the address itself, too. Detaching leaves zeroed pages of the
// process's own.
bool heap_attach(uint64_t base, char* pages, uint64_t bytes, bool host);
void heap_detach(uint64_t base, uint64_t bytes);
// Of a mapping: starts with none.
void heap_set_access(uint64_t base, unsigned flags);

// The allocation that contains the address. False if there is none.
bool heap_find(uint64_t address, Allocation*);

// Where the bytes of [address, address + bytes) can be read and written by this process: inside the second
// window for device pointers, the address itself for host memory. nullptr when a device range leaves its
// allocation, where mappings side by side are one, or may not be accessed.
void* heap_bytes(uint64_t address, uint64_t bytes);
bool heap_is_device_address(uint64_t address);
// The same for a device address whose owner has checked it.
char* heap_raw(uint64_t address);

// Closes what the context had opened of other processes (ipc.cc).
void close_imports(CUctx_st&);

// The context is gone, and all of its device memory with it.
void heap_forget(CUctx_st&);

}  // namespace carve::sim
