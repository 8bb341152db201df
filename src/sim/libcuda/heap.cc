// The process's table of allocations. It has one mutex, and a look-up among 10,000 allocations takes 100 ns
// in a balanced tree.
#include "sim/libcuda/heap.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "sim/libcuda/managed.h"
#include "sim/model/memory.h"

namespace carve::sim {
namespace {

constexpr uint64_t small_bytes = 1ull << 20;
constexpr uint64_t step_bytes = 512;

struct Heap {
  std::mutex mutex;
  uint64_t window = 0;  // Device addresses.
  uint64_t size = 0;
  uint64_t shift = 0;  // Distance from a device address to its bytes.
  std::map<uint64_t, uint64_t> free_ranges;
  std::map<uint64_t, HeapRecord> allocations;
  std::map<uint64_t, std::shared_ptr<Shared>> shared;  // Blocks that became segments.
  unsigned long long next_id = 1;
};
Heap* heap = nullptr;

constexpr uint64_t rounded(uint64_t n, uint64_t step) { return (n + step - 1) / step * step; }

// Cuts the range out of the free range that contains it.
uint64_t cut(std::map<uint64_t, uint64_t>::iterator from, uint64_t base, uint64_t bytes) {
  const auto [start, length] = *from;
  heap->free_ranges.erase(from);
  if (base > start) heap->free_ranges[start] = base - start;
  if (start + length > base + bytes) heap->free_ranges[base + bytes] = start + length - base - bytes;
  return base;
}

uint64_t take_range(uint64_t bytes, uint64_t alignment = memory_block_bytes, uint64_t wish = 0) {
  auto& ranges = heap->free_ranges;
  if (wish)
    if (auto it = ranges.upper_bound(wish); it != ranges.begin()) {
      --it;
      if (wish - it->first < it->second && it->first + it->second - wish >= bytes)
        return cut(it, wish, bytes);
    }
  for (auto it = ranges.begin(); it != ranges.end(); ++it) {
    const uint64_t base = rounded(it->first, alignment);
    if (base - it->first < it->second && it->first + it->second - base >= bytes) return cut(it, base, bytes);
  }
  return 0;
}

void give_range(uint64_t base, uint64_t bytes) {
  madvise(reinterpret_cast<void*>(base + heap->shift), bytes, MADV_DONTNEED);
  auto next = heap->free_ranges.lower_bound(base);
  if (next != heap->free_ranges.end() && base + bytes == next->first) {
    bytes += next->second;
    next = heap->free_ranges.erase(next);
  }
  if (next != heap->free_ranges.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == base) {
      before->second += bytes;
      return;
    }
  }
  heap->free_ranges[base] = bytes;
}

// Takes blocks of the device for a context, together with a range of addresses for them.
CUresult take_blocks(CUctx_st& c, uint64_t bytes, uint64_t* base) {
  Process& p = process();
  Device& d = c.own_device();
  {
    const Locked lock(d);
    if (d.contexts[c.index].serial != c.serial) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (bytes > free_bytes(d))
      sweep(p.set, c.device, now_ns(), true);  // Memory of dead processes is released before a refusal.
    const Refusal r = take(d, c.index, bytes);
    if (r != Refusal::none) return refusal(r);
  }
  if (!base) return CUDA_SUCCESS;
  *base = take_range(bytes);
  if (*base == 0) {
    const Locked lock(d);
    give(d, c.index, bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_SUCCESS;
}

void give_blocks(CUctx_st& c, uint64_t bytes) {
  Device& d = c.own_device();
  const Locked lock(d);
  if (d.contexts[c.index].serial == c.serial) give(d, c.index, bytes);
}

// Releases blocks of a context and their addresses. The blocks go back to the device, or to the segment that
// they have become.
void give_run(CUctx_st& c, uint64_t base, uint64_t bytes) {
  const auto shared = heap->shared.find(base);
  if (shared == heap->shared.end()) {
    give_range(base, bytes);
    give_blocks(c, bytes);
    return;
  }
  heap_detach(base, bytes);
  give_range(base, bytes);
  heap->shared.erase(shared);
}

// Finds a run of free steps in the block. Returns -1 if there is none.
int find_run(const SmallBlock& block, unsigned steps) {
  unsigned run = 0;
  for (unsigned i = 0; i < block.taken.size(); ++i) {
    run = block.taken[i] ? 0 : run + 1;
    if (run == steps) return static_cast<int>(i + 1 - steps);
  }
  return -1;
}

using SmallBlocks = std::vector<std::unique_ptr<SmallBlock>>;

CUresult allocate_small(CUctx_st& c, SmallBlocks& blocks, uint64_t bytes, uint64_t* base, SmallBlock** in) {
  const auto steps = static_cast<unsigned>(rounded(bytes, step_bytes) / step_bytes);
  int at = -1;
  SmallBlock* block = nullptr;
  for (auto it = blocks.rbegin(); it != blocks.rend() && at < 0; ++it) {
    block = it->get();
    if (block->used + steps <= block->taken.size()) at = find_run(*block, steps);
  }
  if (at < 0) {
    auto fresh = std::make_unique<SmallBlock>();
    if (const CUresult e = take_blocks(c, memory_block_bytes, &fresh->base)) return e;
    block = fresh.get();
    blocks.push_back(std::move(fresh));
    at = 0;
  }
  for (unsigned i = 0; i < steps; ++i) block->taken.set(static_cast<size_t>(at) + i);
  block->used += steps;
  *base = block->base + static_cast<uint64_t>(at) * step_bytes;
  *in = block;
  return CUDA_SUCCESS;
}

void free_small(CUctx_st& c, const HeapRecord& a) {
  const uint64_t first = (a.base - a.small->base) / step_bytes,
                 steps = rounded(a.bytes, step_bytes) / step_bytes;
  for (uint64_t i = 0; i < steps; ++i) a.small->taken.reset(first + i);
  a.small->used -= static_cast<unsigned>(steps);
  if (a.small->used) return;
  give_run(c, a.small->base, memory_block_bytes);
  SmallBlocks& blocks = a.kind == Memory::array  ? c.array_blocks
                        : a.kind == Memory::code ? c.code_blocks
                                                 : c.small_blocks;
  std::erase_if(blocks, [&](const auto& b) { return b.get() == a.small; });
}

void record(HeapRecord a) {
  a.id = heap->next_id++;
  heap->allocations[a.base] = a;
}

const HeapRecord* containing(uint64_t address) {
  auto it = heap->allocations.upper_bound(address);
  if (it == heap->allocations.begin()) return nullptr;
  const HeapRecord& a = std::prev(it)->second;
  return address - a.base < a.bytes ? &a : nullptr;
}

CUresult allocate(CUctx_st& c, SmallBlocks& blocks, uint64_t bytes, Memory kind, uint64_t* base) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > heap->size) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::lock_guard lock(heap->mutex);
  HeapRecord a = {.bytes = bytes, .context = &c, .device = c.device, .kind = kind};
  if (bytes <= small_bytes) {
    if (const CUresult e = allocate_small(c, blocks, bytes, &a.base, &a.small)) return e;
  } else {
    a.blocks = rounded(bytes, memory_block_bytes);
    if (const CUresult e = take_blocks(c, a.blocks, &a.base)) return e;
  }
  record(a);
  *base = a.base;
  return CUDA_SUCCESS;
}

}  // namespace

bool heap_start() {
  // Reserves twice 2 TiB of addresses, or less if the process may not have that many.
  auto fresh = std::make_unique<Heap>();
  for (uint64_t size = 2ull << 40; size >= 64ull << 30; size /= 4) {
    void* p = mmap(nullptr, 2 * size + memory_block_bytes, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) continue;
    fresh->window = rounded(reinterpret_cast<uint64_t>(p), memory_block_bytes);
    void* bytes = reinterpret_cast<void*>(fresh->window + size);
    if (mprotect(bytes, size, PROT_READ | PROT_WRITE) != 0) {
      munmap(p, 2 * size + memory_block_bytes);
      continue;
    }
    madvise(bytes, size, MADV_DONTFORK);
    madvise(bytes, size, MADV_DONTDUMP);
    madvise(bytes, size, MADV_NOHUGEPAGE);
    fresh->size = fresh->shift = size;
    fresh->free_ranges[fresh->window] = size;
    heap = fresh.release();
    return true;
  }
  return false;
}

CUresult heap_allocate(CUctx_st& c, uint64_t bytes, uint64_t* base) {
  return allocate(c, c.small_blocks, bytes, Memory::device, base);
}
CUresult heap_allocate_array(CUctx_st& c, uint64_t bytes, uint64_t* base) {
  return allocate(c, c.array_blocks, bytes, Memory::array, base);
}

CUresult heap_allocate_code(CUctx_st& c, uint64_t bytes, uint64_t* base) {
  return allocate(c, c.code_blocks, bytes, Memory::code, base);
}
CUresult heap_take_blocks(CUctx_st& c, uint64_t bytes) { return take_blocks(c, bytes, nullptr); }
void heap_give_blocks(CUctx_st& c, uint64_t bytes) { give_blocks(c, bytes); }

CUresult heap_allocate_managed(CUctx_st& c, uint64_t bytes, unsigned flags, uint64_t* base) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > heap->size) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::lock_guard lock(heap->mutex);
  const uint64_t blocks = rounded(bytes, memory_block_bytes);
  {
    const Locked device(c.own_device());
    if (const Refusal r = admit_managed(c.own_device(), bytes); r != Refusal::none) return refusal(r);
  }
  void* p = mmap(nullptr, blocks, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  *base = reinterpret_cast<uint64_t>(p);
  managed_open(*base, blocks);
  record({.base = *base,
          .bytes = bytes,
          .blocks = blocks,
          .context = &c,
          .device = c.device,
          .kind = Memory::managed,
          .flags = flags});
  return CUDA_SUCCESS;
}

CUresult heap_allocate_host(CUctx_st* c, uint64_t bytes, unsigned flags, void** out) {
  if (bytes == 0) {
    *out = nullptr;
    return CUDA_SUCCESS;
  }
  if (bytes > 1ull << 46) return CUDA_ERROR_OUT_OF_MEMORY;
  void* p = mmap(nullptr, rounded(bytes, 4096), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::lock_guard lock(heap->mutex);
  record({.base = reinterpret_cast<uint64_t>(p),
          .bytes = bytes,
          .context = c,
          .device = c->device,
          .kind = Memory::host,
          .flags = flags});
  *out = p;
  return CUDA_SUCCESS;
}

CUresult heap_register_host(CUctx_st* c, void* p, uint64_t bytes, unsigned flags) {
  if (!p || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(heap->mutex);
  const auto base = reinterpret_cast<uint64_t>(p);
  if (containing(base) || containing(base + bytes - 1)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  record({.base = base,
          .bytes = bytes,
          .context = c,
          .device = c->device,
          .kind = Memory::registered,
          .flags = flags});
  return CUDA_SUCCESS;
}

CUresult heap_free(uint64_t base, Memory kind, Memory or_kind) {
  const std::lock_guard lock(heap->mutex);
  const auto found = heap->allocations.find(base);
  if (found == heap->allocations.end()) return CUDA_ERROR_INVALID_VALUE;
  const HeapRecord a = found->second;
  if (a.kind != kind && a.kind != or_kind) return CUDA_ERROR_INVALID_VALUE;
  heap->allocations.erase(found);
  if (a.small) {
    free_small(*a.context, a);
  } else if (a.blocks && a.kind != Memory::managed) {
    give_run(*a.context, a.base, a.blocks);
  } else if (a.kind == Memory::managed) {
    managed_close(a.base);
    munmap(reinterpret_cast<void*>(a.base), a.blocks);
  } else if (a.kind == Memory::host) {
    munmap(reinterpret_cast<void*>(a.base), rounded(a.bytes, 4096));
  }
  return CUDA_SUCCESS;
}

uint64_t heap_take_range(uint64_t bytes, uint64_t alignment, uint64_t wish) {
  const std::lock_guard lock(heap->mutex);
  return take_range(bytes, alignment, wish);
}
void heap_give_range(uint64_t base, uint64_t bytes) {
  const std::lock_guard lock(heap->mutex);
  give_range(base, bytes);
}

CUresult heap_share(uint64_t base, std::shared_ptr<Shared>* out, uint64_t* offset) {
  // No effect of any context may write the bytes while they are being moved.
  std::vector<std::shared_ptr<CUctx_st>> contexts;
  {
    const std::lock_guard lock(process().mutex);
    for (const auto& [handle, c] : process().contexts) contexts.push_back(c);
  }
  static std::mutex one_at_a_time;
  const std::lock_guard moving(one_at_a_time);
  std::vector<std::unique_lock<std::mutex>> still;
  for (const auto& c : contexts) still.emplace_back(c->performing);
  const std::lock_guard lock(heap->mutex);
  const auto found = heap->allocations.find(base);
  if (found == heap->allocations.end() || found->second.kind != Memory::device)
    return CUDA_ERROR_INVALID_VALUE;
  const HeapRecord& a = found->second;
  const uint64_t block = a.small ? a.small->base : a.base, bytes = a.small ? memory_block_bytes : a.blocks;
  *offset = a.base - block;
  std::shared_ptr<Shared>& shared = heap->shared[block];
  if (!shared) {
    const CUresult e = Shared::create(a.device, bytes, Shared::Counted::in_the_context, a.context, &shared);
    if (e != CUDA_SUCCESS) return heap->shared.erase(block), e;
    // Copies only pages that were written. Reading an untouched page costs a fault, but no memory.
    const char* from = reinterpret_cast<const char*>(block + heap->shift);
    static constexpr char zero_bytes[4096] = {};
    for (uint64_t at = 0; at < bytes; at += sizeof zero_bytes)
      if (std::memcmp(from + at, zero_bytes, sizeof zero_bytes) != 0)
        std::memcpy(shared->base() + at, from + at, sizeof zero_bytes);
    if (!heap_attach(block, shared->base(), bytes, false)) {
      // Releases the segment and returns its bytes to the context.
      return heap->shared.erase(block), take_blocks(*a.context, bytes, nullptr), CUDA_ERROR_OUT_OF_MEMORY;
    }
  }
  *out = shared;
  return CUDA_SUCCESS;
}

bool heap_attach(uint64_t base, char* pages, uint64_t bytes, bool host) {
  void* target = reinterpret_cast<void*>(base + heap->shift);
  if (mremap(pages, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, target) == MAP_FAILED) return false;
  if (host &&
      mremap(pages, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, reinterpret_cast<void*>(base)) == MAP_FAILED)
    return heap_detach(base, bytes), false;
  return true;
}

void heap_detach(uint64_t base, uint64_t bytes) {
  const auto renewed = [&](uint64_t at, int protection) {
    void* p = mmap(reinterpret_cast<void*>(at), bytes, protection,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return p == MAP_FAILED ? nullptr : p;
  };
  renewed(base, PROT_NONE);
  if (void* p = renewed(base + heap->shift, PROT_READ | PROT_WRITE)) {
    madvise(p, bytes, MADV_DONTFORK);
    madvise(p, bytes, MADV_DONTDUMP);
    madvise(p, bytes, MADV_NOHUGEPAGE);
  }
}

void heap_set_access(uint64_t base, unsigned flags) {
  const std::lock_guard lock(heap->mutex);
  const auto found = heap->allocations.find(base);
  if (found != heap->allocations.end()) found->second.access = flags;
}

void heap_record(HeapRecord a) {
  const std::lock_guard lock(heap->mutex);
  record(a);
}
bool heap_strike(uint64_t base, Memory kind, HeapRecord* out) {
  const std::lock_guard lock(heap->mutex);
  const auto found = heap->allocations.find(base);
  if (found == heap->allocations.end() || found->second.kind != kind) return false;
  *out = found->second;
  heap->allocations.erase(found);
  return true;
}

bool heap_find(uint64_t address, HeapRecord* out) {
  const std::lock_guard lock(heap->mutex);
  const HeapRecord* a = containing(address);
  if (a) *out = *a;
  return a != nullptr;
}

bool heap_is_device_address(uint64_t address) { return address - heap->window < heap->size; }

char* heap_raw(uint64_t address) { return reinterpret_cast<char*>(address + heap->shift); }

void* heap_bytes(uint64_t address, uint64_t bytes) {
  if (!heap_is_device_address(address)) return reinterpret_cast<void*>(address);
  const std::lock_guard lock(heap->mutex);
  for (uint64_t at = address, left = bytes;;) {
    const HeapRecord* a = containing(at);
    if (!a || !a->access || (at != address && a->kind != Memory::mapped)) return nullptr;
    const uint64_t here = a->bytes - (at - a->base);
    if (left <= here) break;
    if (a->kind != Memory::mapped) return nullptr;
    at += here;
    left -= here;
  }
  return reinterpret_cast<void*>(address + heap->shift);
}

void heap_forget(CUctx_st& c) {
  const std::lock_guard lock(heap->mutex);
  for (auto it = heap->allocations.begin(); it != heap->allocations.end();) {
    const HeapRecord& a = it->second;
    if (a.context != &c) {
      ++it;
      continue;
    }
    if (a.blocks && a.kind != Memory::managed) give_run(c, a.base, a.blocks);
    if (a.kind == Memory::managed) {
      managed_close(a.base);
      munmap(reinterpret_cast<void*>(a.base), a.blocks);
    }
    if (a.kind == Memory::host) munmap(reinterpret_cast<void*>(a.base), rounded(a.bytes, 4096));
    it = heap->allocations.erase(it);
  }
  for (SmallBlocks* blocks : {&c.small_blocks, &c.array_blocks, &c.code_blocks}) {
    for (const auto& block : *blocks) give_run(c, block->base, memory_block_bytes);
    blocks->clear();
  }
}

}  // namespace carve::sim
