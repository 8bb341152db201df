// Memory of cuMemAlloc that other processes open. When the first handle is made, the block of 2 MiB or more
// becomes a segment: the bytes move into a file that both processes can map, at the block's addresses. The
// memory belongs to the exporter, and lives until the exporter has freed it and every process has closed it.
#include <cstring>

#include "sim/libcuda/heap.h"
#include "sim/libcuda/holding.h"
#include "sim/libcuda/imported.h"

using namespace carve::sim;

namespace {

constexpr uint64_t memory_magic = 0x3143504956524143;  // "CARVIPC1"

// The contents of a handle, which only this driver can read.
struct MemoryHandle {
  uint64_t magic;
  uint32_t device, segment;
  uint64_t serial;
  uint64_t offset, bytes;  // Size of the allocation, and its position in the block.
  uint32_t client, reserved;
  uint64_t generation;  // Generation of the exporter.
};
static_assert(sizeof(MemoryHandle) <= sizeof(CUipcMemHandle));

// A pointer that is open in a context.
struct Opened {
  CUctx_st* context;
  uint64_t base;  // Base of the import.
  unsigned users;
};
std::mutex& opened_mutex() {
  static auto* m = new std::mutex;
  return *m;
}
std::map<CUdeviceptr, Opened>& opened() {
  static auto* all = new std::map<CUdeviceptr, Opened>;
  return *all;
}

CUresult open_handle(CUdeviceptr* out, const CUipcMemHandle& raw, unsigned flags) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = entered()) return e;
  if (!out || (flags & ~static_cast<unsigned>(CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)))
    return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult e = current(&c)) return e;
  MemoryHandle h;
  std::memcpy(&h, &raw, sizeof h);
  if (h.magic != memory_magic) return CUDA_ERROR_INVALID_VALUE;
  if (h.client == process().slot && h.generation == process().generation) return CUDA_ERROR_INVALID_CONTEXT;
  if (h.device != c->device) return CUDA_ERROR_INVALID_DEVICE;
  std::shared_ptr<Shared> segment;
  if (Shared::open(h.device, h.segment, h.serial, &segment)) return CUDA_ERROR_MAP_FAILED;
  if (h.offset > segment->bytes() || h.bytes > segment->bytes() - h.offset) return CUDA_ERROR_INVALID_VALUE;
  uint64_t base = 0;
  const std::lock_guard lock(opened_mutex());
  if (const CUresult e = import_attach(segment, &base)) return e;
  *out = base + h.offset;
  if (const auto known = opened().find(*out); known != opened().end()) {
    import_detach(base);
    ++known->second.users;
    return CUDA_SUCCESS;
  }
  opened()[*out] = {c.get(), base, 1};
  heap_record(
      {.base = *out, .bytes = h.bytes, .context = c.get(), .device = c->device, .kind = Memory::imported});
  return CUDA_SUCCESS;
}

}  // namespace

namespace carve::sim {

void close_imports(CUctx_st& c) {
  const std::lock_guard lock(opened_mutex());
  std::erase_if(opened(), [&](const auto& row) {
    if (row.second.context != &c) return false;
    HeapRecord a;
    heap_strike(row.first, Memory::imported, &a);
    import_detach(row.second.base);
    return true;
  });
}

}  // namespace carve::sim

EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle* out, CUdeviceptr pointer) {
  if (const CUresult e = entered()) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult e = has_context()) return e;
  HeapRecord a;
  if (!heap_find(pointer, &a) || a.kind != Memory::device) return CUDA_ERROR_INVALID_VALUE;
  wait_device(a.device);
  std::shared_ptr<Shared> segment;
  uint64_t offset = 0;
  if (const CUresult e = heap_share(a.base, &segment, &offset)) return e;
  const MemoryHandle h = {memory_magic,
                          segment->device(),
                          segment->index(),
                          segment->serial(),
                          offset,
                          a.bytes,
                          process().slot,
                          0,
                          process().generation};
  *out = {};
  std::memcpy(out, &h, sizeof h);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuIpcOpenMemHandle(CUdeviceptr* out, CUipcMemHandle handle, unsigned int flags) {
  return open_handle(out, handle, flags);
}
EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* out, CUipcMemHandle handle, unsigned int flags) {
  return open_handle(out, handle, flags);
}

EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
  if (const CUresult e = has_context()) return e;
  HeapRecord a;
  if (!heap_find(pointer, &a) || a.kind != Memory::imported) return CUDA_ERROR_INVALID_VALUE;
  wait_device(a.device);
  const std::lock_guard lock(opened_mutex());
  const auto found = opened().find(pointer);
  if (found == opened().end()) return CUDA_ERROR_INVALID_VALUE;
  if (--found->second.users) return CUDA_SUCCESS;
  heap_strike(pointer, Memory::imported, &a);
  import_detach(found->second.base);
  opened().erase(found);
  return CUDA_SUCCESS;
}
