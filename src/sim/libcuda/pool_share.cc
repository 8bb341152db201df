// Pools that other processes import. The chunks of an exportable pool are segments. The descriptor of a pool
// only names the pool, and each pointer is passed as data that names its chunk. An imported pool holds no
// memory of its own and allocates none.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "sim/libcuda/heap.h"
#include "sim/libcuda/imported.h"
#include "sim/libcuda/pools.h"

using namespace carve::sim;

namespace {

constexpr uint64_t pool_magic = 0x314c4f4f50565243;     // "CRVPOOL1"
constexpr uint64_t pointer_magic = 0x3152545056524143;  // "CARVPTR1"

struct PoolLabel {
  uint64_t magic;
  uint32_t device, reserved;
  PoolName name;
};
struct PointerLabel {
  uint64_t magic;
  uint32_t device, segment;
  uint64_t serial;
  uint64_t offset, bytes;
  PoolName name;
};
static_assert(sizeof(PointerLabel) <= sizeof(CUmemPoolPtrExportData));

}  // namespace

EXPORT CUresult cuMemPoolExportToShareableHandle(void* out, CUmemoryPool pool, CUmemAllocationHandleType type,
                                                 unsigned long long flags) {
  if (const CUresult e = entered()) return e;
  const std::lock_guard lock(pools().mutex);
  if (!out || flags || !pools().known(pool) || pool->imported) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || !(pool->handle_types & type))
    return CUDA_ERROR_INVALID_VALUE;
  const PoolLabel label = {pool_magic, pool->device, 0, pool->name};
  const int fd = memfd_create("carve-sim-pool", MFD_CLOEXEC);
  if (fd < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  if (write(fd, &label, sizeof label) != sizeof label) return close(fd), CUDA_ERROR_OPERATING_SYSTEM;
  *static_cast<int*>(out) = fd;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool* out, void* handle,
                                                   CUmemAllocationHandleType type, unsigned long long flags) {
  if (const CUresult e = entered()) return e;
  if (!out || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
  const auto fd = static_cast<int>(reinterpret_cast<intptr_t>(handle));
  PoolLabel label = {};
  if (pread(fd, &label, sizeof label, 0) != sizeof label || label.magic != pool_magic)
    return CUDA_ERROR_INVALID_VALUE;
  if (visible_of(label.device) < 0) return CUDA_ERROR_INVALID_DEVICE;
  const std::lock_guard lock(pools().mutex);
  *out = pools().make(label.device, false);
  (*out)->imported = true;
  (*out)->name = label.name;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData* out, CUdeviceptr pointer) {
  if (const CUresult e = entered()) return e;
  const std::lock_guard lock(pools().mutex);
  HeapRecord a;
  if (!out || !heap_find(pointer, &a) || a.kind != Memory::pool || a.pool->imported)
    return CUDA_ERROR_INVALID_VALUE;
  const auto chunk = a.pool->segments.find(a.pool->book.chunk_of(a.base).base);
  if (chunk == a.pool->segments.end()) return CUDA_ERROR_INVALID_VALUE;  // The pool is not exportable.
  const Shared& s = *chunk->second;
  const PointerLabel label = {pointer_magic,         s.device(), s.index(),   s.serial(),
                              a.base - chunk->first, a.bytes,    a.pool->name};
  *out = {};
  std::memcpy(out, &label, sizeof label);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolImportPointer(CUdeviceptr* out, CUmemoryPool pool, CUmemPoolPtrExportData* data) {
  if (const CUresult e = entered()) return e;
  if (!out || !data) return CUDA_ERROR_INVALID_VALUE;
  PointerLabel label;
  std::memcpy(&label, data, sizeof label);
  const std::lock_guard lock(pools().mutex);
  if (!pools().known(pool) || !pool->imported || label.magic != pointer_magic || label.name != pool->name ||
      label.device != pool->device)
    return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<Shared> segment;
  if (const CUresult e = Shared::open(label.device, label.segment, label.serial, &segment)) return e;
  if (label.offset > segment->bytes() || label.bytes > segment->bytes() - label.offset)
    return CUDA_ERROR_INVALID_VALUE;
  uint64_t base = 0;
  if (const CUresult e = import_attach(segment, &base)) return e;
  *out = base + label.offset;
  if (HeapRecord a; heap_find(*out, &a)) {  // A pointer can be imported only once.
    import_detach(base);
    return CUDA_ERROR_ALREADY_MAPPED;
  }
  pool->pointers[*out] = base;
  heap_record(
      {.base = *out, .bytes = label.bytes, .device = pool->device, .kind = Memory::pool, .pool = pool});
  return CUDA_SUCCESS;
}
