// One mutex guards this file's state. It is taken before the device's own lock.
#include "sim/libcuda/managed.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "sim/model/memory.h"

namespace carve::sim {
namespace {

constexpr unsigned host_bit = 31;

struct Block {
  CUctx_st* home = nullptr;  // The block is on this context's device; null if it is on the host.
  CUmemLocation preferred = {}, prefetched = {};
  uint32_t accessed_by = 0;  // One bit per visible device; host_bit is the host.
  bool read_mostly = false;
};
using Blocks = std::vector<Block>;

struct Managed {
  std::mutex mutex;
  std::map<uint64_t, Blocks> ranges;
  std::unordered_map<CUctx_st*, uint64_t>
      wanted;                      // Bytes whose home is a context's device, whether or not they fit there.
  std::atomic<unsigned> count{0};  // Number of ranges of managed memory.
  std::atomic<bool> away{false};   // Some block is not on the device of a kernel that may touch it.
};
Managed& managed() {
  static auto* all = new Managed;
  return *all;
}

// Returns the blocks that a range touches, or only those that it covers fully. Returns none if the range
// leaves its allocation.
std::span<Block> blocks_of(uint64_t address, uint64_t bytes, bool covered = false) {
  auto it = managed().ranges.upper_bound(address);
  if (it == managed().ranges.begin() || bytes == 0) return {};
  --it;
  const uint64_t into = address - it->first, all = it->second.size() * memory_block_bytes;
  if (into >= all || bytes > all - into) return {};
  const uint64_t first = (into + (covered ? memory_block_bytes - 1 : 0)) / memory_block_bytes;
  const uint64_t end = (into + bytes + (covered ? 0 : memory_block_bytes - 1)) / memory_block_bytes;
  return {it->second.data() + first, end > first ? end - first : 0};
}

// Sets the number of managed bytes that the context wants on its device. Excess blocks move away, missing
// blocks move in.
void tell(CUctx_st& c) {
  const uint64_t wanted = managed().wanted[&c];
  Device& d = c.own_device();
  const Locked lock(d);
  Context& m = d.contexts[c.index];
  if (m.serial != c.serial) return;
  limit_managed(d, c.index, wanted);
  const uint64_t missing = wanted - m.managed_bytes;
  if (missing > free_bytes(d)) sweep(process().set, c.device, now_ns(), true);
  settle_managed(d, c.index, missing);
}

// Moves the blocks for which `picked` is true to a new home. Returns their number of bytes.
template <class Picked>
uint64_t move(std::span<Block> blocks, CUctx_st* to, Picked picked) {
  uint64_t moved = 0;
  std::vector<CUctx_st*> told;
  const auto changed = [&](CUctx_st* c) {
    if (c && std::ranges::find(told, c) == told.end()) told.push_back(c);
  };
  for (Block& b : blocks) {
    if (b.home == to || !picked(b)) continue;
    changed(b.home);
    if (b.home) managed().wanted[b.home] -= memory_block_bytes;
    if (to) managed().wanted[to] += memory_block_bytes;
    b.home = to;
    moved += memory_block_bytes;
  }
  for (CUctx_st* c : told) tell(*c);
  if (to) tell(*to);  // Even if no block moved, because evicted memory may return.
  return moved;
}

// Returns whether a block that a context touches moves to its device. It does not if it is already there or
// prefers another location.
bool comes(const Block& b, unsigned device, int visible) {
  if (b.home && b.home->device == device) return false;
  return b.preferred.type == CU_MEM_LOCATION_TYPE_INVALID ||
         (b.preferred.type == CU_MEM_LOCATION_TYPE_DEVICE && b.preferred.id == visible);
}

bool same(const CUmemLocation& a, const CUmemLocation& b) { return a.type == b.type && a.id == b.id; }

bool on_host(const CUmemLocation& l) {
  return l.type != CU_MEM_LOCATION_TYPE_DEVICE && l.type != CU_MEM_LOCATION_TYPE_INVALID;
}

}  // namespace

void managed_open(uint64_t base, uint64_t bytes) {
  const std::lock_guard lock(managed().mutex);
  managed().ranges[base] = Blocks(bytes / memory_block_bytes);
  managed().count.fetch_add(1, std::memory_order_relaxed);
  managed().away.store(true, std::memory_order_relaxed);
}

void managed_close(uint64_t base) {
  const std::lock_guard lock(managed().mutex);
  const auto found = managed().ranges.find(base);
  if (found == managed().ranges.end()) return;
  move(found->second, nullptr, [](const Block&) { return true; });
  managed().ranges.erase(found);
  managed().count.fetch_sub(1, std::memory_order_relaxed);
}

void managed_forget(CUctx_st& c) {
  const std::lock_guard lock(managed().mutex);
  for (auto& [base, blocks] : managed().ranges)
    move(blocks, nullptr, [&](const Block& b) { return b.home == &c; });
  managed().wanted.erase(&c);
}

void managed_touch(CUctx_st& c) {
  if (!managed().away.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(managed().mutex);
  if (c.destroyed.load() || !managed().away.exchange(false)) return;
  const int visible = visible_of(c.device);
  for (auto& [base, blocks] : managed().ranges)
    move(blocks, &c, [&](const Block& b) { return comes(b, c.device, visible); });
}

void managed_touch(CUctx_st& c, uint64_t address, uint64_t bytes) {
  if (managed().count.load(std::memory_order_relaxed) == 0) return;
  const std::lock_guard lock(managed().mutex);
  const auto blocks = blocks_of(address, bytes);
  if (blocks.empty() || c.destroyed.load()) return;
  const int visible = visible_of(c.device);
  move(blocks, &c, [&](const Block& b) { return comes(b, c.device, visible); });
}

CUresult check_location(const CUmemLocation& l) {
  unsigned device = 0;
  switch (l.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE: return device_of(l.id, &device);
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUmemLocation location_of(CUdevice device) {
  if (device == CU_DEVICE_CPU) return {CU_MEM_LOCATION_TYPE_HOST, 0};
  return {CU_MEM_LOCATION_TYPE_DEVICE, device};
}

CUresult managed_advise(uint64_t address, uint64_t bytes, CUmem_advise advice,
                        const CUmemLocation& location) {
  // These three kinds of advice ignore the location.
  if (advice != CU_MEM_ADVISE_SET_READ_MOSTLY && advice != CU_MEM_ADVISE_UNSET_READ_MOSTLY &&
      advice != CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION)
    if (const CUresult e = check_location(location)) return e;
  const std::lock_guard lock(managed().mutex);
  const auto blocks = blocks_of(address, bytes);
  if (blocks.empty()) return CUDA_ERROR_INVALID_VALUE;
  const uint32_t bit = 1u << (on_host(location) ? host_bit : static_cast<unsigned>(location.id) % 32);
  for (Block& b : blocks) switch (advice) {
      case CU_MEM_ADVISE_SET_READ_MOSTLY: b.read_mostly = true; break;
      case CU_MEM_ADVISE_UNSET_READ_MOSTLY: b.read_mostly = false; break;
      case CU_MEM_ADVISE_SET_PREFERRED_LOCATION: b.preferred = location; break;
      case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION: b.preferred = {}; break;
      case CU_MEM_ADVISE_SET_ACCESSED_BY: b.accessed_by |= bit; break;
      case CU_MEM_ADVISE_UNSET_ACCESSED_BY: b.accessed_by &= ~bit; break;
      default: return CUDA_ERROR_INVALID_VALUE;
    }
  if (advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION && on_host(location))
    move(blocks, nullptr, [](const Block&) { return true; });
  managed().away.store(true, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

CUresult managed_prefetch(uint64_t address, uint64_t bytes, const CUmemLocation& location, CUctx_st* to,
                          uint64_t* moved) {
  const std::lock_guard lock(managed().mutex);
  const auto blocks = blocks_of(address, bytes);
  if (blocks.empty()) return CUDA_ERROR_INVALID_VALUE;
  if (to && to->destroyed.load()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  for (Block& b : blocks) b.prefetched = location;
  *moved += move(blocks, to, [&](const Block& b) { return !to || !b.home || b.home->device != to->device; });
  managed().away.store(true, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

CUresult managed_discard(uint64_t address, uint64_t bytes) {
  const std::lock_guard lock(managed().mutex);
  if (blocks_of(address, bytes).empty()) return CUDA_ERROR_INVALID_VALUE;
  move(blocks_of(address, bytes, true), nullptr, [](const Block&) { return true; });
  managed().away.store(true, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

// Returns an attribute if all blocks of a range have the same value, otherwise the value that means "none".
CUresult managed_attribute(uint64_t address, uint64_t bytes, CUmem_range_attribute which, void* out,
                           size_t out_bytes) {
  const std::lock_guard lock(managed().mutex);
  const auto blocks = blocks_of(address, bytes);
  if (blocks.empty() || !out) return CUDA_ERROR_INVALID_VALUE;
  if (which == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY) {
    if (out_bytes == 0 || out_bytes % sizeof(int)) return CUDA_ERROR_INVALID_VALUE;
    uint32_t all = UINT32_MAX;
    for (const Block& b : blocks) all &= b.accessed_by;
    std::vector<int> devices;
    if (all >> host_bit & 1) devices.push_back(CU_DEVICE_CPU);
    for (unsigned i = 0; i < host_bit; ++i)
      if (all >> i & 1) devices.push_back(static_cast<int>(i));
    devices.resize(out_bytes / sizeof(int), CU_DEVICE_INVALID);
    std::memcpy(out, devices.data(), out_bytes);
    return CUDA_SUCCESS;
  }
  if (out_bytes != sizeof(int)) return CUDA_ERROR_INVALID_VALUE;
  const auto agreed = [&](CUmemLocation Block::*member) {
    const CUmemLocation l = blocks.front().*member;
    const bool all = std::ranges::all_of(blocks, [&](const Block& b) { return same(b.*member, l); });
    return all ? l : CUmemLocation{};
  };
  const auto ordinal = [](const CUmemLocation& l) {
    if (l.type == CU_MEM_LOCATION_TYPE_DEVICE) return l.id;
    return on_host(l) ? CU_DEVICE_CPU : CU_DEVICE_INVALID;
  };
  int answer = 0;
  switch (which) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY: answer = std::ranges::all_of(blocks, &Block::read_mostly); break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION: answer = ordinal(agreed(&Block::preferred)); break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION: answer = ordinal(agreed(&Block::prefetched)); break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE: answer = agreed(&Block::preferred).type; break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID: answer = agreed(&Block::preferred).id; break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE: answer = agreed(&Block::prefetched).type; break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID: answer = agreed(&Block::prefetched).id; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  std::memcpy(out, &answer, sizeof answer);
  return CUDA_SUCCESS;
}

}  // namespace carve::sim
