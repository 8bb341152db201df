// Arrays whose memory is mapped later: their requirements, their tiles, and cuMemMapArrayAsync.
//
// The call is ordered with its stream. Here it waits for the stream's current work and is complete when it
// returns. That is never earlier than the stream order requires, and no program can tell the difference from
// a later time.
#include "sim/libcuda/array.h"
#include "sim/libcuda/capture.h"
#include "sim/libcuda/heap.h"
#include "sim/libcuda/schedule.h"

using namespace carve::sim;

namespace {

// Returns the memory of an array that is not part of another; nullptr for other handles.
std::shared_ptr<ArrayMemory> memory_of(CUarray handle) {
  const auto a = find_array(handle);
  return a && !a->child ? a->memory : nullptr;
}
std::shared_ptr<ArrayMemory> memory_of(CUmipmappedArray handle) {
  const auto m = find_mipmap(handle);
  return m ? m->memory : nullptr;
}

template <class Handle>
CUresult requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* out, Handle handle, CUdevice visible) {
  unsigned device = 0;
  if (const CUresult e = device_of(visible, &device)) return e;
  const auto m = memory_of(handle);
  if (!out || !m || !m->deferred()) return CUDA_ERROR_INVALID_VALUE;
  *out = {m->layout.bytes, tile_bytes, {}};
  return CUDA_SUCCESS;
}

template <class Handle>
CUresult sparse_properties(CUDA_ARRAY_SPARSE_PROPERTIES* out, Handle handle) {
  if (const CUresult e = entered()) return e;
  const auto m = memory_of(handle);
  if (!out || !m || !m->sparse()) return CUDA_ERROR_INVALID_VALUE;
  const ArrayLayout& l = m->layout;
  *out = {{l.tile_texels[0], l.tile_texels[1], l.tile_texels[2]},
          l.tail_first,
          l.tail_bytes,
          l.tail_bytes ? CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL : 0,
          {}};
  return CUDA_SUCCESS;
}

// Returns the tiles of a sparse array that an operation names, in the order in which memory is assigned to
// them.
CUresult named_tiles(const ArrayMemory& m, const CUarrayMapInfo& info, std::vector<uint64_t>* out) {
  const ArrayLayout& l = m.layout;
  if (info.subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL) {
    const auto& tail = info.subresource.miptail;
    if (tail.layer || tail.offset % tile_bytes || tail.size % tile_bytes || tail.size == 0 ||
        tail.size > l.tail_bytes || tail.offset > l.tail_bytes - tail.size)
      return CUDA_ERROR_INVALID_VALUE;
    for (uint64_t at = 0; at < tail.size; at += tile_bytes)
      out->push_back((l.tail_offset + tail.offset + at) / tile_bytes);
    return CUDA_SUCCESS;
  }
  const auto& s = info.subresource.sparseLevel;
  if (info.subresourceType != CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL || s.level >= l.tail_first)
    return CUDA_ERROR_INVALID_VALUE;
  const ArrayPart& p = l.parts[s.level];
  const bool layered = l.tile[2] == 1;
  if (layered ? s.offsetZ || s.extentDepth != 1 || s.layer >= p.slices : s.layer != 0)
    return CUDA_ERROR_INVALID_VALUE;
  const uint64_t offset[3] = {s.offsetX, s.offsetY, layered ? s.layer : s.offsetZ};
  const uint64_t extent[3] = {s.extentWidth, s.extentHeight, s.extentDepth};
  const uint64_t whole[3] = {p.descriptor.Width, p.descriptor.Height, p.slices};
  uint64_t first[3], count[3];
  for (unsigned i = 0; i < 3; ++i) {
    const uint64_t tile = l.tile_texels[i];
    // The last tile may extend beyond the level, so the extent may end with the tile or with the level.
    const bool aligned = extent[i] % tile == 0 || offset[i] + extent[i] == whole[i];
    first[i] = offset[i] / tile;
    count[i] = (extent[i] + tile - 1) / tile;
    if (offset[i] % tile || extent[i] == 0 || !aligned || count[i] > p.tiles[i] ||
        first[i] > p.tiles[i] - count[i])
      return CUDA_ERROR_INVALID_VALUE;
  }
  for (uint64_t z = first[2]; z < first[2] + count[2]; ++z)
    for (uint64_t y = first[1]; y < first[1] + count[1]; ++y)
      for (uint64_t x = first[0]; x < first[0] + count[0]; ++x)
        out->push_back(p.offset / tile_bytes + (z * p.tiles[1] + y) * p.tiles[0] + x);
  return CUDA_SUCCESS;
}

struct Operation {
  std::shared_ptr<ArrayMemory> memory;
  std::shared_ptr<Backing> backing;  // nullptr to unmap.
  uint64_t offset = 0;
  std::vector<uint64_t> tiles;  // The tiles of a sparse array.
};

CUresult check(const CUctx_st& c, const CUarrayMapInfo& info, Operation* out) {
  if (info.flags || info.reserved[0] || info.reserved[1]) return CUDA_ERROR_INVALID_VALUE;
  switch (info.resourceType) {
    case CU_RESOURCE_TYPE_ARRAY: out->memory = memory_of(info.resource.array); break;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY: out->memory = memory_of(info.resource.mipmap); break;
    default: break;
  }
  const auto& m = out->memory;
  if (!m || !(m->sparse() || m->deferred())) return CUDA_ERROR_INVALID_VALUE;
  const int visible = visible_of(c.device);
  if (visible < 0 || info.deviceBitMask != 1u << visible || m->context->device != c.device)
    return CUDA_ERROR_INVALID_VALUE;
  uint64_t bytes = m->layout.bytes;
  if (m->sparse()) {
    if (const CUresult e = named_tiles(*m, info, &out->tiles)) return e;
    bytes = out->tiles.size() * tile_bytes;
  }
  if (info.memOperationType == CU_MEM_OPERATION_TYPE_UNMAP)
    return info.memHandle.memHandle ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  if (info.memOperationType != CU_MEM_OPERATION_TYPE_MAP || info.memHandleType != CU_MEM_HANDLE_TYPE_GENERIC)
    return CUDA_ERROR_INVALID_VALUE;
  out->backing = find_backing(info.memHandle.memHandle);
  out->offset = info.offset;
  const auto& b = out->backing;
  if (!b || b->host || b->device != c.device || info.offset % tile_bytes || info.offset > b->bytes ||
      bytes > b->bytes - info.offset || b->properties.allocFlags.usage != CU_MEM_CREATE_USAGE_TILE_POOL)
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

CUresult perform_whole(Operation& o) {
  ArrayMemory& m = *o.memory;
  if (m.whole) {
    HeapRecord a;
    heap_strike(m.base, Memory::array, &a);
    heap_detach(m.base, m.range);
  }
  std::swap(m.whole, o.backing);
  if (!m.whole) return CUDA_SUCCESS;
  if (!heap_attach(m.base, m.whole->at + o.offset, m.layout.bytes, false)) {
    m.whole.reset();
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  heap_record({.base = m.base,
               .bytes = m.layout.bytes,
               .context = m.context,
               .device = m.context->device,
               .kind = Memory::array});
  return CUDA_SUCCESS;
}

// Attaches neighbouring tiles together. The memory that was mapped before is moved to `dying`.
CUresult perform_tiles(Operation& o, std::vector<std::shared_ptr<Backing>>* dying) {
  ArrayMemory& m = *o.memory;
  uint64_t from = o.offset;
  for (size_t i = 0; i < o.tiles.size();) {
    size_t n = 1;
    while (i + n < o.tiles.size() && o.tiles[i + n] == o.tiles[i] + n) ++n;
    const uint64_t at = m.base + o.tiles[i] * tile_bytes;
    const bool attached = o.backing && heap_attach(at, o.backing->at + from, n * tile_bytes, false);
    if (!attached) heap_detach(at, n * tile_bytes);
    for (size_t k = 0; k < n; ++k) {
      std::shared_ptr<Backing>& tile = m.tiles[o.tiles[i + k]];
      if (tile) dying->push_back(std::move(tile));
      tile = attached ? o.backing : nullptr;
    }
    if (o.backing && !attached) return CUDA_ERROR_OUT_OF_MEMORY;
    from += n * tile_bytes;
    i += n;
  }
  return CUDA_SUCCESS;
}

CUresult map_arrays(const CUarrayMapInfo* list, unsigned count, CUstream handle) {
  std::shared_ptr<CUctx_st> c;
  CUstream_st* stream = nullptr;
  if (const CUresult e = entered()) return e;
  if (!list || !count) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult e = stream_of(handle, &c, &stream)) return e;
  std::vector<Operation> operations(count);
  for (unsigned i = 0; i < count; ++i)
    if (const CUresult e = check(*c, list[i], &operations[i])) return e;
  if (const CUresult e = refuse_wait(*stream)) return e;
  if (const CUresult e = wait_channel(*c, stream->channel)) return e;
  for (Operation& o : operations) {
    std::vector<std::shared_ptr<Backing>> dying;  // Destroyed after the lock is released.
    const std::lock_guard lock(o.memory->mapping);
    if (const CUresult e = o.memory->sparse() ? perform_tiles(o, &dying) : perform_whole(o)) return e;
  }
  return CUDA_SUCCESS;
}

}  // namespace

EXPORT CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* out, CUarray a,
                                             CUdevice device) {
  return requirements(out, a, device);
}
EXPORT CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* out, CUmipmappedArray m,
                                                      CUdevice device) {
  return requirements(out, m, device);
}
// For an array without a mipmap, the first level of the tail is always 0.
EXPORT CUresult cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES* out, CUarray a) {
  if (const CUresult e = sparse_properties(out, a)) return e;
  out->miptailFirstLevel = 0;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES* out, CUmipmappedArray m) {
  return sparse_properties(out, m);
}
EXPORT CUresult cuMemMapArrayAsync(CUarrayMapInfo* list, unsigned int count, CUstream s) {
  return map_arrays(list, count, s);
}
EXPORT CUresult cuMemMapArrayAsync_ptsz(CUarrayMapInfo* list, unsigned int count, CUstream s) {
  return map_arrays(list, count, per_thread(s));
}
