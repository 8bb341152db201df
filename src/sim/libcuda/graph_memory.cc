// One mutex guards all graph memory pools. It is taken before the locks of the heap and of the devices. The
// destructor of a block takes it too, so a thread that holds it must not drop the last reference to a block.
#include "sim/libcuda/graph_memory.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "sim/libcuda/heap.h"
#include "sim/libcuda/holding.h"
#include "sim/model/pool_chunks.h"

namespace carve::sim {
namespace {

// The memory that the graphs of one stream share. It is as large as the largest of them needs.
struct Arena {
  uint64_t bytes = 0;
  std::set<const CUgraphExec_st*> users;
  unsigned busy = 0;  // Launches that are being submitted.
  Place last;
};
using ArenaKey = std::tuple<unsigned, unsigned long long, unsigned>;  // Device, context, channel.

struct GraphPools {
  std::mutex mutex;
  GraphMemory of[max_devices];
  std::map<ArenaKey, Arena> arenas;
  std::map<CUdeviceptr, GraphBlock*> blocks;
  // Blocks that are allocated, or were freed after work that may still use them, even if their graph no
  // longer exists.
  std::set<std::shared_ptr<GraphBlock>> living;
};
GraphPools& graph_pools() {
  static auto* all = new GraphPools;
  return *all;
}

// Holds the mutex. Destroys unused blocks after it has released the mutex.
class PoolsLock {
 public:
  PoolsLock() : lock_(graph_pools().mutex) {
    std::erase_if(graph_pools().living, [&](const std::shared_ptr<GraphBlock>& b) {
      if (b->state != GraphBlock::freed || !is_over(b->last_use)) return false;
      gone_.push_back(b);
      return true;
    });
  }

 private:
  std::vector<std::shared_ptr<GraphBlock>> gone_;
  std::unique_lock<std::mutex> lock_;
};

// The functions below require the mutex.

void count(unsigned device, uint64_t bytes) {
  GraphMemory& g = graph_pools().of[device];
  g.used += bytes;
  g.used_high = std::max(g.used_high, g.used);
}
void discount(unsigned device, uint64_t bytes) { graph_pools().of[device].used -= bytes; }

void let_go(GraphBlock& b) {
  if (b.held) discount(b.device, b.bytes);
  b.held = false;
}

bool idle(const Arena& a) { return !a.busy && is_over(a.last); }

// Releases memory that has no user. If `unwanted` is set, releases only the arenas whose executables no
// longer exist.
void drop_idle(unsigned device, bool unwanted) {
  GraphPools& p = graph_pools();
  std::erase_if(p.arenas, [&](const auto& entry) {
    const auto& [key, arena] = entry;
    if (std::get<0>(key) != device || (unwanted && !arena.users.empty()) || !idle(arena)) return false;
    discount(device, arena.bytes);
    return true;
  });
  if (unwanted) return;
  for (const auto& [address, b] : p.blocks)
    if (b->device == device && b->held && b->state != GraphBlock::live)
      if (b->state == GraphBlock::unused || is_over(b->last_use)) let_go(*b);
}

CUresult grow(unsigned device, uint64_t bytes) {
  GraphMemory& g = graph_pools().of[device];
  if (g.used + bytes > g.reserved) drop_idle(device, false);
  if (g.used + bytes > g.reserved) {
    const uint64_t more = PoolBook::chunk_for(g.used + bytes - g.reserved);
    if (const CUresult e = take_bytes(device, more)) return e;
    g.reserved += more;
    g.reserved_high = std::max(g.reserved_high, g.reserved);
  }
  count(device, bytes);
  return CUDA_SUCCESS;
}

// Returns whether the executable may be launched now.
bool ready(const GraphNeeds& needs, bool frees_before) {
  GraphPools& p = graph_pools();
  for (const auto& b : needs.lasting)
    if (b->state == GraphBlock::live && !frees_before) return false;
  return std::ranges::all_of(needs.frees, [&](const GraphNeeds::Free& f) {
    const auto found = p.blocks.find(f.address);
    return found != p.blocks.end() && found->second->state == GraphBlock::live;
  });
}

CUresult take_temporary(const CUgraphExec_st* x, const GraphNeeds& needs, const CUctx_st& c,
                        unsigned channel) {
  for (const auto& [device, bytes] : needs.temporary) {
    Arena& arena = graph_pools().arenas[{device, c.id, channel}];
    arena.users.insert(x);
    ++arena.busy;
  }
  for (const auto& [device, bytes] : needs.temporary) {
    Arena& arena = graph_pools().arenas[{device, c.id, channel}];
    if (bytes <= arena.bytes) continue;
    if (const CUresult e = grow(device, bytes - arena.bytes)) return e;
    arena.bytes = bytes;
  }
  return CUDA_SUCCESS;
}

void end_submission(const GraphNeeds& needs, const CUctx_st& c, unsigned channel, const Place& end) {
  for (const auto& [device, bytes] : needs.temporary) {
    const auto found = graph_pools().arenas.find({device, c.id, channel});
    if (found == graph_pools().arenas.end() || !found->second.busy) continue;
    --found->second.busy;
    if (end.context) found->second.last = end;
  }
}

}  // namespace

GraphBlock::~GraphBlock() {
  const std::lock_guard lock(graph_pools().mutex);
  let_go(*this);
  graph_pools().blocks.erase(address);
  HeapRecord a;
  if (heap_strike(address, Memory::graph, &a)) heap_give_range(address, bytes);
}

CUresult make_block(unsigned device, uint64_t bytes, std::shared_ptr<GraphBlock>* out) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t whole = (bytes + memory_block_bytes - 1) / memory_block_bytes * memory_block_bytes;
  const uint64_t base = bytes > 1ull << 46 ? 0 : heap_take_range(whole);
  if (!base) return CUDA_ERROR_OUT_OF_MEMORY;
  heap_record({.base = base, .bytes = bytes, .device = device, .kind = Memory::graph});
  auto b = std::make_shared<GraphBlock>();
  b->device = device;
  b->address = base;
  b->bytes = whole;
  const std::lock_guard lock(graph_pools().mutex);
  graph_pools().blocks[base] = b.get();
  *out = std::move(b);
  return CUDA_SUCCESS;
}

CUresult claim_blocks(const GraphNeeds& needs) {
  const std::lock_guard lock(graph_pools().mutex);
  if (std::ranges::any_of(needs.blocks, [](const auto& b) { return b->instantiated; }))
    return CUDA_ERROR_NOT_SUPPORTED;
  for (const auto& b : needs.blocks) b->instantiated = true;
  return CUDA_SUCCESS;
}

void unclaim_blocks(const GraphNeeds& needs, const CUgraphExec_st* x) {
  const std::lock_guard lock(graph_pools().mutex);
  for (const auto& b : needs.blocks) b->instantiated = false;
  for (auto& [key, arena] : graph_pools().arenas) arena.users.erase(x);
}

CUresult graph_memory_take(const CUgraphExec_st* x, const GraphNeeds& needs, const CUctx_st& c,
                           unsigned channel, bool launch, bool frees_before) {
  const PoolsLock lock;
  if (launch && !ready(needs, frees_before)) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = take_temporary(x, needs, c, channel);
  std::vector<std::pair<GraphBlock*, decltype(GraphBlock::state)>> taken;
  for (size_t i = 0; i < needs.lasting.size() && result == CUDA_SUCCESS; ++i) {
    GraphBlock& b = *needs.lasting[i];
    taken.emplace_back(&b, b.state);
    b.state = GraphBlock::live;  // Set now, so that making room for the next block keeps this one.
    if (b.held) continue;
    result = grow(b.device, b.bytes);
    b.held = result == CUDA_SUCCESS;
  }
  if (launch && result == CUDA_SUCCESS) {
    graph_pools().living.insert(needs.lasting.begin(), needs.lasting.end());
    return result;
  }
  for (const auto& [b, before] : taken) b->state = before;
  end_submission(needs, c, channel, {});
  return result;
}

void graph_memory_submitted(const GraphNeeds& needs, const CUctx_st& c, unsigned channel,
                            std::span<const Place> done, const Place& end) {
  for (const GraphNeeds::Free& f : needs.frees) graph_memory_free(f.address, done[f.node]);
  const std::lock_guard lock(graph_pools().mutex);
  end_submission(needs, c, channel, end);
}

CUresult graph_memory_free(CUdeviceptr address, const Place& place) {
  const PoolsLock lock;
  const auto found = graph_pools().blocks.find(address);
  if (found == graph_pools().blocks.end() || found->second->state != GraphBlock::live)
    return CUDA_ERROR_INVALID_VALUE;
  found->second->state = GraphBlock::freed;
  found->second->last_use = place;
  return CUDA_SUCCESS;
}

bool graph_memory_is(CUdeviceptr address) {
  const std::lock_guard lock(graph_pools().mutex);
  return graph_pools().blocks.contains(address);
}

GraphMemory graph_memory(unsigned device) {
  const PoolsLock lock;
  drop_idle(device, true);
  return graph_pools().of[device];
}

void graph_memory_reset(unsigned device, bool used_high, bool reserved_high) {
  const std::lock_guard lock(graph_pools().mutex);
  GraphMemory& g = graph_pools().of[device];
  if (used_high) g.used_high = g.used;
  if (reserved_high) g.reserved_high = g.reserved;
}

void graph_memory_trim(unsigned device) {
  const PoolsLock lock;
  drop_idle(device, false);
  GraphMemory& g = graph_pools().of[device];
  const uint64_t keep = PoolBook::chunk_for(g.used);
  if (keep >= g.reserved) return;
  give_bytes(device, g.reserved - keep);
  g.reserved = keep;
}

}  // namespace carve::sim
