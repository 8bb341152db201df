// Memory pools that several processes use. A pool is passed as a descriptor, and each of its pointers as
// data. Importer and exporter share the memory, which is charged once (memory_pool.h). The descriptor does
// not keep the memory allocated; it only carries the name of the pool's shared block.
#include "guest/memory/memory_pool.h"
#include "guest/memory/sharing.h"

namespace carve::guest {
namespace {

// Gives the pool a shared block, which has no bytes at first. Returns false if the slice has no free one.
bool has_block(Process& p, Pool& pool) REQUIRES(pool.lock) {
  if (pool.block != 0) return true;
  const Charge nothing = {0, pool.charge.device, pool.charge.lane};
  const unsigned block = share(p, nothing, SharedBlockKind::pool, new_name());
  if (block == no_block) return false;
  pool.block_name.store(p.report->charges.block[block].name.load(), std::memory_order_relaxed);
  pool.block = block + 1;
  return true;
}

// Imported pools and pools of host memory are entered without a device. Of these, only imported pools have a
// block.
bool is_imported(const Pool& pool) {
  return pool.device.load(std::memory_order_relaxed) == static_cast<uint16_t>(not_granted);
}

// Returns the pool that is recorded for an address of a suballocation.
Pool* pool_at(Process& p, CUdeviceptr pointer) {
  Record record;
  const bool known =
      p.allocations.find(pointer, &record) && record.device == in_pool && record.uses < max_pools;
  return known ? &p.pool[record.uses] : nullptr;
}

}  // namespace

bool is_held_by_others(Process& p, const Pool& pool) {
  return pool.block != 0 && is_pool_held_beside(p, static_cast<unsigned>(pool.block - 1));
}

void leave_block(Process& p, Pool& pool) {
  if (pool.block != 0) {
    const auto block = static_cast<unsigned>(pool.block - 1);
    if (is_imported(pool)) end_own_import(p, block);
    leave(p, block);
  }
  pool.block = pool.released = 0;
}

}  // namespace carve::guest

using namespace carve;
using namespace carve::guest;

CUresult cuMemPoolExportToShareableHandle(void* out, CUmemoryPool handle, CUmemAllocationHandleType type,
                                          unsigned long long flags) {
  const auto make = [=] {
    return exported(driver<&cuMemPoolExportToShareableHandle>(out, handle, type, flags), out, type);
  };
  Process* p = attached();
  Pool* pool = p != nullptr ? find_pool(*p, handle) : nullptr;
  if (pool == nullptr || out == nullptr || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
      pool->kind.load(std::memory_order_relaxed) != Pool::Kind::charged)
    return make();
  pool->lock.lock();
  const CUresult result = has_block(*p, *pool) ? make() : CUDA_ERROR_OUT_OF_MEMORY;
  int fd = -1;
  if (result == CUDA_SUCCESS) __builtin_memcpy(&fd, out, sizeof fd);
  // Importers cannot find a block without a name, so the charge of such a pool is never lowered.
  if (result == CUDA_SUCCESS && !name_descriptor(fd, pool->block_name.load(std::memory_order_relaxed)))
    keep_until_slice_ends(*p, static_cast<unsigned>(pool->block - 1));
  pool->lock.unlock();
  return result;
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool* out, void* handle, CUmemAllocationHandleType type,
                                            unsigned long long flags) {
  const auto import = [=] { return driver<&cuMemPoolImportFromShareableHandle>(out, handle, type, flags); };
  Process* p = attached();
  if (p == nullptr || out == nullptr) return import();
  const Imported from = imported(*p, handle, type);
  if (from.is_foreign) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = import();
  Pool* pool = result == CUDA_SUCCESS ? pool_of(*p, *out, not_granted, false) : nullptr;
  if (from.block == no_block) return result;
  if (pool != nullptr)
    pool->block_name.store(p->report->charges.block[from.block].name.load(), std::memory_order_relaxed);
  leave(*p, from.block);  // A pool without pointers holds no memory.
  return result;
}

// All of the pool's memory may be in the chunk of this pointer.
CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData* out, CUdeviceptr pointer) {
  const auto make = [=] { return driver<&cuMemPoolExportPointer>(out, pointer); };
  Process* p = attached();
  Pool* pool = p != nullptr ? pool_at(*p, pointer) : nullptr;
  if (pool == nullptr) return make();
  pool->lock.lock();
  bool shared = has_block(*p, *pool);
  if (shared && pool->charge.bytes != 0) {
    shared = add_to_block(*p, pool->charge, static_cast<unsigned>(pool->block - 1));
    if (shared) pool->charge.bytes = 0;
  }
  const CUresult result = shared ? make() : CUDA_ERROR_OUT_OF_MEMORY;
  pool->lock.unlock();
  return result;
}

CUresult cuMemPoolImportPointer(CUdeviceptr* out, CUmemoryPool handle, CUmemPoolPtrExportData* data) {
  const auto import = [=] { return driver<&cuMemPoolImportPointer>(out, handle, data); };
  Process* p = attached();
  Pool* pool = p != nullptr ? find_pool(*p, handle) : nullptr;
  if (pool == nullptr || out == nullptr || pool->block_name.load(std::memory_order_relaxed) == 0 ||
      pool->kind.load(std::memory_order_relaxed) != Pool::Kind::not_charged)
    return import();
  pool->lock.lock();
  if (pool->block == 0) {
    const unsigned block = join(*p, pool->block_name.load(std::memory_order_relaxed));
    pool->block = block != no_block ? block + 1 : 0;
    if (block != no_block) begin_own_import(*p, block);
  }
  const CUresult result = import();
  Record record, previous;
  if (result == CUDA_SUCCESS) {
    record = record_of(*out, 0, {0, in_pool, 0});
    record.uses = static_cast<uint32_t>(pool - p->pool);
    // If there is no memory for the record, the free of the pointer is not noticed, and the block stays held
    // until the process ends.
    pool->live.fetch_add(1, std::memory_order_relaxed);
    p->allocations.put(record, &previous);
  } else {
    settle(*p, *pool);
  }
  pool->lock.unlock();
  return result;
}
