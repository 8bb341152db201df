// Occupancy: the number of blocks of a function that fit on a multiprocessor, given its threads, shared
// memory, registers and limit of blocks. Also the queries that programs use to choose the shape of a launch.
#include <algorithm>

#include "sim/libcuda/module.h"

namespace carve::sim {

unsigned resident_blocks(const Facts& facts, const CUfunc_st& f, unsigned threads, unsigned dynamic_shared) {
  const unsigned warps = (threads + 31) / 32;
  const uint64_t shared = f.image.static_shared + dynamic_shared + facts.shared_reserved_per_block;
  uint64_t blocks = facts.blocks_per_multiprocessor;
  blocks = std::min<uint64_t>(blocks, facts.threads_per_multiprocessor / 32 / std::max(warps, 1u));
  blocks = std::min<uint64_t>(
      blocks, facts.registers_per_multiprocessor / (registers_of(f) * 32 * std::max(warps, 1u)));
  if (shared) blocks = std::min<uint64_t>(blocks, facts.shared_per_multiprocessor / shared);
  return static_cast<unsigned>(blocks);
}

}  // namespace carve::sim

using namespace carve::sim;

namespace {

CUresult known(CUfunction f) {
  if (const CUresult e = entered()) return e;
  return find_function(f) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult max_blocks(int* out, CUfunction f, int threads, size_t shared) {
  if (const CUresult e = known(f)) return e;
  if (!out || threads <= 0 || threads > 1024) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = context_of(*f, &c)) return e;
  *out = static_cast<int>(resident_blocks(c->own_device().facts, *f, static_cast<unsigned>(threads),
                                          static_cast<unsigned>(std::min<size_t>(shared, 1u << 30))));
  return CUDA_SUCCESS;
}

// Returns the block size that keeps the most threads resident; among equal ones, the largest.
CUresult potential(int* grid, int* block, CUfunction f, CUoccupancyB2DSize shared_of, size_t shared,
                   int limit) {
  if (const CUresult e = known(f)) return e;
  if (!grid || !block) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = context_of(*f, &c)) return e;
  const int most = std::min(limit > 0 ? limit : 1024, static_cast<int>(f->image.max_threads));
  int best = 0;
  for (int threads = most / 32 * 32; threads >= 32; threads -= 32) {
    int blocks = 0;
    if (const CUresult e = max_blocks(&blocks, f, threads, shared_of ? shared_of(threads) : shared)) return e;
    if (blocks * threads <= best) continue;
    best = blocks * threads;
    *block = threads;
    *grid = blocks * static_cast<int>(c->own_device().facts.multiprocessors);
  }
  return best ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* out, CUfunction f, int threads,
                                                            size_t shared) {
  return max_blocks(out, f, threads, shared);
}
EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* out, CUfunction f, int threads,
                                                                     size_t shared, unsigned int flags) {
  return flags > 1 ? CUDA_ERROR_INVALID_VALUE : max_blocks(out, f, threads, shared);
}
EXPORT CUresult cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction f,
                                                 CUoccupancyB2DSize shared_of, size_t shared, int limit) {
  return potential(grid, block, f, shared_of, shared, limit);
}
EXPORT CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, CUfunction f,
                                                          CUoccupancyB2DSize shared_of, size_t shared,
                                                          int limit, unsigned int flags) {
  return flags > 1 ? CUDA_ERROR_INVALID_VALUE : potential(grid, block, f, shared_of, shared, limit);
}
EXPORT CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* out, CUfunction f, int blocks, int threads) {
  if (const CUresult e = known(f)) return e;
  if (!out || blocks <= 0 || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = context_of(*f, &c)) return e;
  const Facts& facts = c->own_device().facts;
  const uint64_t each = facts.shared_per_multiprocessor / static_cast<unsigned>(blocks);
  const uint64_t taken = f->image.static_shared + facts.shared_reserved_per_block;
  *out = each > taken ? std::min<uint64_t>(each - taken, facts.shared_per_block_optin) : 0;
  return CUDA_SUCCESS;
}

// Clusters exist since compute capability 9.0. The model has no separate hardware limit for them, so the
// result is the number of their blocks that fit on the device.
EXPORT CUresult cuOccupancyMaxPotentialClusterSize(int* out, CUfunction f, const CUlaunchConfig* config) {
  if (const CUresult e = known(f)) return e;
  if (!out || !config) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = context_of(*f, &c)) return e;
  *out = c->own_device().facts.cc_major >= 9 ? 8 : 1;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuOccupancyMaxActiveClusters(int* out, CUfunction f, const CUlaunchConfig* config) {
  if (const CUresult e = known(f)) return e;
  if (!out || !config) return CUDA_ERROR_INVALID_VALUE;
  unsigned cluster = 1;
  for (unsigned i = 0; i < config->numAttrs; ++i)
    if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      const auto& dim = config->attrs[i].value.clusterDim;
      cluster = std::max(1u, dim.x * dim.y * dim.z);
    }
  int blocks = 0;
  const auto threads = static_cast<int>(config->blockDimX * config->blockDimY * config->blockDimZ);
  if (const CUresult e = max_blocks(&blocks, f, threads, config->sharedMemBytes)) return e;
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = context_of(*f, &c)) return e;
  *out = blocks * static_cast<int>(c->own_device().facts.multiprocessors) / static_cast<int>(cluster);
  return CUDA_SUCCESS;
}
