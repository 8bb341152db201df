#include "sim/libcuda/external.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/libcuda/array.h"
#include "sim/libcuda/heap.h"
#include "sim/libcuda/holding.h"
#include "sim/libcuda/shared.h"

using namespace carve::sim;

struct CUextMemory_st {
  CUctx_st* context = nullptr;
  unsigned device = 0;
  uint64_t bytes = 0;
  uint64_t taken = 0;  // Bytes taken from the device.
  char* at = nullptr;
  std::shared_ptr<Shared> shared;  // Set instead of a mapping of its own.

  CUextMemory_st() = default;
  CUextMemory_st(const CUextMemory_st&) = delete;
  CUextMemory_st& operator=(const CUextMemory_st&) = delete;
  ~CUextMemory_st() {
    if (at && !shared) munmap(at, bytes);
    if (taken) give_bytes(device, taken);
  }
};

namespace {

constexpr uint64_t page_bytes = 4096;
constexpr unsigned dedicated = 1;  // CUDA_EXTERNAL_MEMORY_DEDICATED of cuda.h.

// A part of external memory that is mapped at device addresses.
struct Buffer {
  std::shared_ptr<CUextMemory_st> memory;
  uint64_t base = 0, length = 0;  // The range of addresses.
};
struct Externals {
  std::mutex mutex;
  std::unordered_map<CUexternalMemory, std::shared_ptr<CUextMemory_st>> handles;
  std::map<uint64_t, Buffer> buffers;
};
Externals& externals() {
  static auto* all = new Externals;
  return *all;
}

std::shared_ptr<CUextMemory_st> find(CUexternalMemory handle) {
  const std::lock_guard lock(externals().mutex);
  const auto found = externals().handles.find(handle);
  return found == externals().handles.end() ? nullptr : found->second;
}

CUresult map_part(const std::shared_ptr<CUextMemory_st>& m, uint64_t offset, uint64_t bytes,
                  uint64_t* address) {
  if (bytes == 0 || bytes > m->bytes || offset > m->bytes - bytes) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t slack = offset % page_bytes,
                 pages = (slack + bytes + page_bytes - 1) / page_bytes * page_bytes;
  const uint64_t length = (pages + memory_block_bytes - 1) / memory_block_bytes * memory_block_bytes;
  const uint64_t base = heap_take_range(length);
  if (!base) return CUDA_ERROR_OUT_OF_MEMORY;
  if (!heap_attach(base, m->at + offset - slack, pages, false)) {
    heap_give_range(base, length);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *address = base + slack;
  heap_record({.base = *address,
               .bytes = bytes,
               .context = m->context,
               .device = m->device,
               .kind = Memory::external});
  const std::lock_guard lock(externals().mutex);
  externals().buffers[*address] = {m, base, length};
  return CUDA_SUCCESS;
}

// Maps memory that is not counted yet, and takes that many bytes from the device.
CUresult map_and_take(int fd, CUextMemory_st& m) {
  void* p = mmap(nullptr, m.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (p == MAP_FAILED) return CUDA_ERROR_INVALID_VALUE;
  madvise(p, m.bytes, MADV_DONTFORK);
  m.at = static_cast<char*>(p);
  const uint64_t takes = (m.bytes + memory_block_bytes - 1) / memory_block_bytes * memory_block_bytes;
  if (const CUresult e = take_bytes(m.device, takes)) return e;
  m.taken = takes;
  return CUDA_SUCCESS;
}

CUresult import(CUexternalMemory* out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* d) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  if (!out || !d || d->size == 0 || (d->flags & ~dedicated) ||
      d->type < CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD ||
      d->type > CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD)
    return CUDA_ERROR_INVALID_VALUE;
  if (d->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD) return CUDA_ERROR_NOT_SUPPORTED;
  struct stat st;
  if (fstat(d->handle.fd, &st) != 0 || !S_ISREG(st.st_mode) || static_cast<uint64_t>(st.st_size) < d->size)
    return CUDA_ERROR_INVALID_VALUE;
  auto m = std::make_shared<CUextMemory_st>();
  m->context = c.get();
  m->device = c->device;
  m->bytes = d->size;
  const bool ours = Shared::open(d->handle.fd, &m->shared) == CUDA_SUCCESS;
  if (ours && (m->shared->device() != c->device || m->shared->bytes() < d->size))
    return CUDA_ERROR_INVALID_VALUE;
  if (ours)
    m->at = m->shared->base();
  else if (const CUresult e = map_and_take(d->handle.fd, *m))
    return e;
  close(d->handle.fd);  // The driver owns the descriptor from now on.
  *out = m.get();
  const std::lock_guard lock(externals().mutex);
  externals().handles[*out] = std::move(m);
  return CUDA_SUCCESS;
}

}  // namespace

namespace carve::sim {

CUresult free_external(uint64_t address) {
  Buffer dying;  // Destroyed after the lock is released.
  {
    const std::lock_guard lock(externals().mutex);
    const auto found = externals().buffers.find(address);
    if (found == externals().buffers.end()) return CUDA_ERROR_INVALID_VALUE;
    dying = std::move(found->second);
    externals().buffers.erase(found);
  }
  HeapRecord a;
  heap_strike(address, Memory::external, &a);
  heap_detach(dying.base, dying.length);
  heap_give_range(dying.base, dying.length);
  return CUDA_SUCCESS;
}

void forget_externals(CUctx_st& c) {
  std::vector<uint64_t> addresses;
  std::vector<std::shared_ptr<CUextMemory_st>> dying;
  {
    const std::lock_guard lock(externals().mutex);
    for (const auto& [address, buffer] : externals().buffers)
      if (buffer.memory->context == &c) addresses.push_back(address);
    std::erase_if(externals().handles, [&](const auto& row) {
      if (row.second->context != &c) return false;
      dying.push_back(row.second);
      return true;
    });
  }
  for (const uint64_t address : addresses) free_external(address);
}

}  // namespace carve::sim

EXPORT CUresult cuImportExternalMemory(CUexternalMemory* out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* d) {
  return import(out, d);
}

EXPORT CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr* out, CUexternalMemory handle,
                                                const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* d) {
  if (const CUresult e = entered()) return e;
  const auto m = find(handle);
  if (!m) return CUDA_ERROR_INVALID_HANDLE;
  if (!out || !d || d->flags) return CUDA_ERROR_INVALID_VALUE;
  uint64_t address = 0;
  if (const CUresult e = map_part(m, d->offset, d->size, &address)) return e;
  *out = address;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuExternalMemoryGetMappedMipmappedArray(CUmipmappedArray* out, CUexternalMemory handle,
                                                        const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC* d) {
  if (const CUresult e = entered()) return e;
  const auto m = find(handle);
  if (!m) return CUDA_ERROR_INVALID_HANDLE;
  if (!out || !d || (d->arrayDesc.Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)))
    return CUDA_ERROR_INVALID_VALUE;
  ArrayLayout layout;
  if (const CUresult e = lay_out(d->arrayDesc, std::max(d->numLevels, 1u), &layout)) return e;
  uint64_t address = 0;
  if (const CUresult e = map_part(m, d->offset, layout.bytes, &address)) return e;
  *out = mipmap_over(*m->context, d->arrayDesc, std::move(layout), address);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDestroyExternalMemory(CUexternalMemory handle) {
  if (const CUresult e = entered()) return e;
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<CUextMemory_st> dying;  // Destroyed after the lock is released.
  const std::lock_guard lock(externals().mutex);
  const auto found = externals().handles.find(handle);
  if (found == externals().handles.end()) return CUDA_ERROR_INVALID_HANDLE;
  dying = std::move(found->second);
  externals().handles.erase(found);
  return CUDA_SUCCESS;
}
