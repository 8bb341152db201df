// Creates, describes and destroys arrays; array_map.cc maps memory later.
#include "sim/libcuda/array.h"

#include "sim/libcuda/capture.h"
#include "sim/libcuda/external.h"
#include "sim/libcuda/heap.h"
#include "sim/libcuda/schedule.h"

namespace carve::sim {
namespace {

struct Arrays {
  std::mutex mutex;
  std::unordered_map<CUarray, std::shared_ptr<CUarray_st>> arrays;
  std::unordered_map<CUmipmappedArray, std::shared_ptr<CUmipmappedArray_st>> mipmaps;
};
Arrays& all() {
  static auto* known = new Arrays;
  return *known;
}

template <class Table, class Handle>
typename Table::mapped_type find(const Table& table, Handle handle) {
  const std::lock_guard lock(all().mutex);
  const auto found = table.find(handle);
  return found == table.end() ? nullptr : found->second;
}

CUresult allocate(CUctx_st& c, const CUDA_ARRAY3D_DESCRIPTOR& d, ArrayLayout layout,
                  std::shared_ptr<ArrayMemory>* out) {
  auto m = std::make_shared<ArrayMemory>();
  m->context = &c;
  m->flags = d.Flags;
  m->layout = std::move(layout);
  if (m->sparse() || m->deferred()) {
    m->range = (m->layout.bytes + memory_block_bytes - 1) / memory_block_bytes * memory_block_bytes;
    m->base = heap_take_range(m->range);
    if (!m->base) return CUDA_ERROR_OUT_OF_MEMORY;
    if (m->sparse()) m->tiles.resize(m->layout.bytes / tile_bytes);
  } else if (const CUresult e = heap_allocate_array(c, m->layout.bytes, &m->base)) {
    return e;
  }
  *out = std::move(m);
  return CUDA_SUCCESS;
}

// Releases the memory, which no work uses any more.
void release(ArrayMemory& m) {
  std::vector<std::shared_ptr<Backing>> dying;
  if (m.external) {
    free_external(m.base);
    return;
  }
  if (!m.range) {
    heap_free(m.base, Memory::array, Memory::array);
    return;
  }
  const std::lock_guard lock(m.mapping);
  HeapRecord a;
  if (m.whole) heap_strike(m.base, Memory::array, &a);
  heap_detach(m.base, m.range);
  heap_give_range(m.base, m.range);
  dying.swap(m.tiles);
  dying.push_back(std::move(m.whole));
}

std::shared_ptr<CUarray_st> child_of(const std::shared_ptr<ArrayMemory>& m, unsigned part) {
  return std::make_shared<CUarray_st>(CUarray_st{m, m->layout.parts[part].descriptor, part, true, {}});
}

CUresult create(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR& d) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  if (const CUresult e = refuse_unsafe_call()) return e;
  ArrayLayout layout;
  if (const CUresult e = lay_out(d, 0, &layout)) return e;
  auto a = std::make_shared<CUarray_st>();
  if (const CUresult e = allocate(*c, d, std::move(layout), &a->memory)) return e;
  a->descriptor = d;
  for (unsigned i = 0; i < a->memory->layout.planes; ++i) a->planes.push_back(child_of(a->memory, i));
  *out = a.get();
  const std::lock_guard lock(all().mutex);
  for (const auto& plane : a->planes) all().arrays[plane.get()] = plane;
  all().arrays[a.get()] = std::move(a);
  return CUDA_SUCCESS;
}

template <class Description>
CUresult described(Description* out, CUarray handle) {
  if (const CUresult e = entered()) return e;
  const auto a = find_array(handle);
  if (!a) return CUDA_ERROR_INVALID_HANDLE;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_ARRAY3D_DESCRIPTOR& d = a->descriptor;
  out->Width = static_cast<decltype(out->Width)>(d.Width);
  out->Height = static_cast<decltype(out->Height)>(d.Height);
  out->Format = d.Format;
  out->NumChannels = d.NumChannels;
  if constexpr (requires { out->Depth; }) {
    out->Depth = static_cast<decltype(out->Depth)>(d.Depth);
    out->Flags = d.Flags;
  }
  return CUDA_SUCCESS;
}

CUmipmappedArray record_mipmap(const CUDA_ARRAY3D_DESCRIPTOR& d, std::shared_ptr<ArrayMemory> memory) {
  auto m = std::make_shared<CUmipmappedArray_st>();
  m->descriptor = d;
  m->memory = std::move(memory);
  for (unsigned i = 0; i < m->memory->layout.parts.size(); ++i) m->levels.push_back(child_of(m->memory, i));
  const std::lock_guard lock(all().mutex);
  for (const auto& level : m->levels) all().arrays[level.get()] = level;
  const CUmipmappedArray handle = m.get();
  all().mipmaps[handle] = std::move(m);
  return handle;
}

}  // namespace

std::shared_ptr<CUarray_st> find_array(CUarray handle) { return find(all().arrays, handle); }
std::shared_ptr<CUmipmappedArray_st> find_mipmap(CUmipmappedArray handle) {
  return find(all().mipmaps, handle);
}

CUmipmappedArray mipmap_over(CUctx_st& c, const CUDA_ARRAY3D_DESCRIPTOR& d, ArrayLayout layout,
                             uint64_t base) {
  auto m = std::make_shared<ArrayMemory>();
  m->context = &c;
  m->flags = d.Flags;
  m->layout = std::move(layout);
  m->base = base;
  m->external = true;
  return record_mipmap(d, std::move(m));
}

char* sparse_bytes(const ArrayMemory& m, const ArrayPart& p, uint64_t x, uint64_t row, uint64_t slice,
                   uint64_t* run) {
  const uint64_t at = offset_in(m.layout, p, x, row, slice, run);
  if (!p.tiled) *run = std::min(*run, tile_bytes - at % tile_bytes);  // The part is in the tail.
  return at / tile_bytes < m.tiles.size() && m.tiles[at / tile_bytes] ? heap_raw(m.base + at) : nullptr;
}

void forget_arrays(CUctx_st& c) {
  std::vector<std::shared_ptr<ArrayMemory>> dying;
  {
    const std::lock_guard lock(all().mutex);
    std::erase_if(all().mipmaps, [&](const auto& row) {
      if (row.second->memory->context != &c) return false;
      dying.push_back(row.second->memory);
      return true;
    });
    std::erase_if(all().arrays, [&](const auto& row) {
      if (row.second->memory->context != &c) return false;
      if (!row.second->child) dying.push_back(row.second->memory);
      return true;
    });
  }
  for (const auto& m : dying) release(*m);
}

}  // namespace carve::sim

using namespace carve::sim;

EXPORT CUresult cuArrayCreate_v2(CUarray* out, const CUDA_ARRAY_DESCRIPTOR* d) {
  if (const CUresult e = has_context()) return e;
  if (!out || !d) return CUDA_ERROR_INVALID_VALUE;
  return create(out, {d->Width, d->Height, 0, d->Format, d->NumChannels, 0});
}
EXPORT CUresult cuArrayCreate(CUarray* out, const CUDA_ARRAY_DESCRIPTOR_v1* d) {
  if (const CUresult e = has_context()) return e;
  if (!out || !d) return CUDA_ERROR_INVALID_VALUE;
  return create(out, {d->Width, d->Height, 0, d->Format, d->NumChannels, 0});
}
EXPORT CUresult cuArray3DCreate_v2(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* d) {
  if (const CUresult e = has_context()) return e;
  return out && d ? create(out, *d) : CUDA_ERROR_INVALID_VALUE;
}
EXPORT CUresult cuArray3DCreate(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR_v1* d) {
  if (const CUresult e = has_context()) return e;
  if (!out || !d) return CUDA_ERROR_INVALID_VALUE;
  return create(out, {d->Width, d->Height, d->Depth, d->Format, d->NumChannels, d->Flags});
}
EXPORT CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* out, CUarray a) { return described(out, a); }
EXPORT CUresult cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR_v1* out, CUarray a) { return described(out, a); }
EXPORT CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* out, CUarray a) {
  return described(out, a);
}
EXPORT CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR_v1* out, CUarray a) {
  return described(out, a);
}

// Waits for the work that may still use an array before its memory is released. The program must not destroy
// levels or planes.
EXPORT CUresult cuArrayDestroy(CUarray handle) {
  if (const CUresult e = entered()) return e;
  if (const CUresult e = refuse_unsafe_call()) return e;
  const auto a = find_array(handle);
  if (!a) return unknown_handle(handle);
  if (a->child) return CUDA_ERROR_INVALID_HANDLE;
  if (const auto owner = find_context(a->memory->context)) wait_idle(*owner);
  {
    const std::lock_guard lock(all().mutex);
    if (!all().arrays.erase(handle)) return CUDA_ERROR_INVALID_HANDLE;
    for (const auto& plane : a->planes) all().arrays.erase(plane.get());
  }
  release(*a->memory);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuArrayGetPlane(CUarray* out, CUarray handle, unsigned int plane) {
  if (const CUresult e = entered()) return e;
  const auto a = find_array(handle);
  if (!a) return unknown_handle(handle);
  if (!out || plane >= a->planes.size()) return CUDA_ERROR_INVALID_VALUE;
  *out = a->planes[plane].get();
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray* out, const CUDA_ARRAY3D_DESCRIPTOR* d,
                                       unsigned int levels) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  if (const CUresult e = refuse_unsafe_call()) return e;
  if (!out || !d) return CUDA_ERROR_INVALID_VALUE;
  ArrayLayout layout;
  if (const CUresult e = lay_out(*d, std::max(levels, 1u), &layout)) return e;
  std::shared_ptr<ArrayMemory> memory;
  if (const CUresult e = allocate(*c, *d, std::move(layout), &memory)) return e;
  *out = record_mipmap(*d, std::move(memory));
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray handle) {
  if (const CUresult e = entered()) return e;
  if (const CUresult e = refuse_unsafe_call()) return e;
  const auto m = find_mipmap(handle);
  if (!m) return unknown_handle(handle);
  if (const auto owner = find_context(m->memory->context)) wait_idle(*owner);
  {
    const std::lock_guard lock(all().mutex);
    if (!all().mipmaps.erase(handle)) return CUDA_ERROR_INVALID_HANDLE;
    for (const auto& level : m->levels) all().arrays.erase(level.get());
  }
  release(*m->memory);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuMipmappedArrayGetLevel(CUarray* out, CUmipmappedArray handle, unsigned int level) {
  if (const CUresult e = entered()) return e;
  const auto m = find_mipmap(handle);
  if (!m) return CUDA_ERROR_INVALID_HANDLE;
  if (!out || level >= m->levels.size()) return CUDA_ERROR_INVALID_VALUE;
  *out = m->levels[level].get();
  return CUDA_SUCCESS;
}
