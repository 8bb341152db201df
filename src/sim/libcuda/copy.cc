// Copies and sets, in all their forms. Each form specifies the source, the destination, the rows and bytes,
// the stream, and whether the caller waits. `move` does the rest: it checks the ranges, submits one operation
// to the right engine and moves the bytes when the operation ends. Variants: _ptds and _ptsz mean the
// thread's own default stream.
//
// When the caller may access the memory again follows the driver's documentation of synchronisation. Copies
// from pageable memory have taken their bytes (up to 64 KiB are staged, larger copies wait); copies to
// pageable memory have stored them. Pinned memory is read and written later.
#include <algorithm>
#include <cstring>

#include "sim/libcuda/array.h"
#include "sim/libcuda/capture.h"
#include "sim/libcuda/heap.h"
#include "sim/libcuda/managed.h"
#include "sim/libcuda/schedule.h"
#include "sim/libcuda/step.h"

using namespace carve::sim;

namespace {

constexpr uint64_t staged_bytes = 64 << 10;

// A box of bytes in linear memory: rows that begin every `pitch` bytes, in layers that begin every
// `slice_pitch` bytes. An Extent has the length of a row and the numbers of rows and layers. Arrays are
// linear memory too, with addresses that no program sees; sparse arrays are not.
struct Box {
  uint64_t address = 0;
  uint64_t pitch = 0;
  uint64_t slice_pitch = 0;
  // For a sparse array, these replace the pitches: the array and the position in it.
  std::shared_ptr<CUarray_st> sparse;
  uint64_t x = 0, y = 0, z = 0;
};
struct Extent {
  uint64_t width = 0, height = 1, depth = 1;
};

uint64_t span(const Box& b, const Extent& e) {
  return (e.depth - 1) * b.slice_pitch + (e.height - 1) * b.pitch + e.width;
}

void copy_box(char* to, const Box& t, const char* from, const Box& f, const Extent& e) {
  if (e.height == 1 && e.depth == 1) {
    std::memmove(to, from, e.width);
    return;
  }
  for (uint64_t z = 0; z < e.depth; ++z)
    for (uint64_t y = 0; y < e.height; ++y)
      std::memmove(to + z * t.slice_pitch + y * t.pitch, from + z * f.slice_pitch + y * f.pitch, e.width);
}

// Returns the address of a box's bytes from (x, y, z) on, and how many bytes of the row follow without a gap.
// Returns nullptr for a hole.
char* piece(const Box& b, char* linear, uint64_t x, uint64_t y, uint64_t z, uint64_t* run) {
  if (!b.sparse) return linear + z * b.slice_pitch + y * b.pitch + x;
  uint64_t here = 0;
  const ArrayMemory& m = *b.sparse->memory;
  char* p = sparse_bytes(m, m.layout.parts[b.sparse->part], b.x + x, b.y + y, b.z + z, &here);
  *run = std::min(*run, here);
  return p;
}

// Copies where either side may have holes. A hole reads as zeros, and writes to it are lost.
void copy_pieces(char* to, const Box& t, char* from, const Box& f, const Extent& e) {
  std::unique_lock<std::mutex> held[2];
  ArrayMemory* a = t.sparse ? t.sparse->memory.get() : nullptr;
  ArrayMemory* b = f.sparse ? f.sparse->memory.get() : nullptr;
  if (a == b) b = nullptr;
  if (a && b && b < a) std::swap(a, b);
  if (a) held[0] = std::unique_lock(a->mapping);
  if (b) held[1] = std::unique_lock(b->mapping);
  for (uint64_t z = 0; z < e.depth; ++z)
    for (uint64_t y = 0; y < e.height; ++y)
      for (uint64_t x = 0, run = 0; x < e.width; x += run) {
        run = e.width - x;
        char* into = piece(t, to, x, y, z, &run);
        const char* out_of = piece(f, from, x, y, z, &run);
        if (into && out_of) std::memmove(into, out_of, run);
        if (into && !out_of) std::memset(into, 0, run);
      }
}

bool on_device(uint64_t address) { return heap_is_device_address(address); }

bool pageable(uint64_t address) {
  HeapRecord a;
  return !on_device(address) && !heap_find(address, &a);
}

// One side of a copy that is described by a structure.
struct Side {
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  CUarray array;
  size_t x, y, z, pitch, height;
};
CUresult place(const Side& s, const Extent& e, Box* out) {
  if (s.type != CU_MEMORYTYPE_ARRAY) {
    const uint64_t base = s.type == CU_MEMORYTYPE_HOST ? reinterpret_cast<uint64_t>(s.host) : s.device;
    out->pitch = s.pitch ? s.pitch : e.width;
    if (out->pitch < e.width) return CUDA_ERROR_INVALID_VALUE;
    out->slice_pitch = out->pitch * (s.height ? s.height : e.height);
    out->address = base + s.z * out->slice_pitch + s.y * out->pitch + s.x;
    return base ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  auto a = find_array(s.array);
  if (!a) return CUDA_ERROR_INVALID_HANDLE;
  if (!a->planes.empty()) return CUDA_ERROR_INVALID_VALUE;  // A copy names one of the planes instead.
  const ArrayMemory& m = *a->memory;
  const ArrayPart& p = m.layout.parts[a->part];
  const auto inside = [](uint64_t from, uint64_t n, uint64_t all) { return n <= all && from <= all - n; };
  if (!inside(s.x, e.width, p.row_bytes) || !inside(s.y, e.height, p.rows) ||
      !inside(s.z, e.depth, p.slices) || s.x % p.element_bytes || e.width % p.element_bytes)
    return CUDA_ERROR_INVALID_VALUE;
  out->address = m.base;
  if (m.sparse()) {
    out->sparse = std::move(a);
    out->x = s.x, out->y = s.y, out->z = s.z;
    return CUDA_SUCCESS;
  }
  out->address += p.offset + s.z * p.slice_pitch + s.y * p.pitch + s.x;
  out->pitch = p.pitch;
  out->slice_pitch = p.slice_pitch;
  return CUDA_SUCCESS;
}

// The sides of a copy that are in memory unknown to the driver.
struct Pageable {
  bool from = false, to = false;
};

// Checks the ranges of a copy and creates its operation.
CUresult prepare(CUctx_st& c, const CUDA_MEMCPY3D& m, Step* out, Pageable* ends) {
  const Extent extent = {m.WidthInBytes, m.Height, m.Depth};
  uint64_t bytes = 0;
  if (m.srcLOD || m.dstLOD || __builtin_mul_overflow(extent.width, extent.height, &bytes) ||
      __builtin_mul_overflow(bytes, extent.depth, &bytes))
    return CUDA_ERROR_INVALID_VALUE;
  Box to, from;
  if (const CUresult e = place({m.dstMemoryType, m.dstHost, m.dstDevice, m.dstArray, m.dstXInBytes, m.dstY,
                                m.dstZ, m.dstPitch, m.dstHeight},
                               extent, &to))
    return e;
  if (const CUresult e = place({m.srcMemoryType, m.srcHost, m.srcDevice, m.srcArray, m.srcXInBytes, m.srcY,
                                m.srcZ, m.srcPitch, m.srcHeight},
                               extent, &from))
    return e;
  const auto bytes_of = [&](const Box& b) {
    return b.sparse ? nullptr : static_cast<char*>(heap_bytes(b.address, span(b, extent)));
  };
  for (const Box* b : {&to, &from})
    if (!on_device(b->address)) managed_touch(c, b->address, span(*b, extent));
  char *t = bytes_of(to), *f = bytes_of(from);
  if ((!t && !to.sparse) || (!f && !from.sparse)) return CUDA_ERROR_INVALID_VALUE;
  out->op.kind = !on_device(from.address) ? OpKind::to_device
                 : on_device(to.address)  ? OpKind::on_device
                                          : OpKind::to_host;
  out->op.duration_ns = copy_time(c.own_device(), out->op.kind, bytes);
  // A program can see device memory only through calls of this driver, so no thread needs to wake up for a
  // copy inside it.
  out->effect.lazy = on_device(to.address);
  ends->from = out->op.kind == OpKind::to_device && pageable(from.address);
  ends->to = out->op.kind == OpKind::to_host && pageable(to.address);
  if (to.sparse || from.sparse)
    out->effect.run = [t, f, to, from, extent](uint64_t) { copy_pieces(t, to, f, from, extent); };
  else
    out->effect.run = [t, f, to, from, extent](uint64_t) { copy_box(t, to, f, from, extent); };
  return CUDA_SUCCESS;
}

// Reads a small copy from pageable memory into a buffer immediately.
bool stage(const CUDA_MEMCPY3D& m, Step* step) {
  if (m.WidthInBytes > staged_bytes || m.Height > 1 || m.Depth > 1 || m.dstMemoryType == CU_MEMORYTYPE_ARRAY)
    return false;
  const char* from = m.srcMemoryType == CU_MEMORYTYPE_HOST ? static_cast<const char*>(m.srcHost)
                                                           : reinterpret_cast<const char*>(m.srcDevice);
  const uint64_t to =
      m.dstMemoryType == CU_MEMORYTYPE_HOST ? reinterpret_cast<uint64_t>(m.dstHost) : m.dstDevice;
  char* t = static_cast<char*>(heap_bytes(to + m.dstXInBytes, m.WidthInBytes));
  std::string staged(from + m.srcXInBytes, m.WidthInBytes);
  step->effect.lazy = false;
  step->effect.run = [t, staged = std::move(staged)](uint64_t) { staged.copy(t, staged.size()); };
  return true;
}

CUresult move_line(uint64_t to, uint64_t from, size_t bytes, CUstream s, bool wait) {
  CUDA_MEMCPY3D m = {};
  m.srcMemoryType = on_device(from) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  m.dstMemoryType = on_device(to) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  m.srcDevice = from, m.srcHost = reinterpret_cast<const void*>(from);
  m.dstDevice = to, m.dstHost = reinterpret_cast<void*>(to);
  m.WidthInBytes = bytes, m.Height = m.Depth = 1;
  return move(m, s, wait);
}

uint64_t address(const void* p) { return reinterpret_cast<uint64_t>(p); }

// Checks that there is a stream with this handle and a current context. Calls do so before they read a
// description.
CUresult accepts(CUstream handle) {
  std::shared_ptr<CUctx_st> c;
  CUstream_st* stream = nullptr;
  return stream_of(handle, &c, &stream);
}

CUresult move_2d(const CUDA_MEMCPY2D* p, CUstream s, bool wait) {
  if (const CUresult e = accepts(s)) return e;
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  CUDA_MEMCPY3D m = {};
  m.srcXInBytes = p->srcXInBytes, m.srcY = p->srcY, m.srcMemoryType = p->srcMemoryType;
  m.srcHost = p->srcHost, m.srcDevice = p->srcDevice, m.srcArray = p->srcArray, m.srcPitch = p->srcPitch;
  m.dstXInBytes = p->dstXInBytes, m.dstY = p->dstY, m.dstMemoryType = p->dstMemoryType;
  m.dstHost = p->dstHost, m.dstDevice = p->dstDevice, m.dstArray = p->dstArray, m.dstPitch = p->dstPitch;
  m.WidthInBytes = p->WidthInBytes, m.Height = p->Height, m.Depth = 1;
  return move(m, s, wait);
}

CUresult move_3d(const CUDA_MEMCPY3D* p, CUstream s, bool wait) {
  if (const CUresult e = accepts(s)) return e;
  return p ? move(*p, s, wait) : CUDA_ERROR_INVALID_VALUE;
}

// A peer copy runs in the current context here. The program sees only the copied bytes.
static_assert(sizeof(CUDA_MEMCPY3D_PEER) == sizeof(CUDA_MEMCPY3D));
CUresult move_3d(const CUDA_MEMCPY3D_PEER* p, CUstream s, bool wait) {
  if (const CUresult e = accepts(s)) return e;
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  if ((p->srcContext && !find_context(p->srcContext)) || (p->dstContext && !find_context(p->dstContext)))
    return CUDA_ERROR_INVALID_CONTEXT;
  // The two structures differ in the names of their reserved fields.
  CUDA_MEMCPY3D m;
  std::memcpy(&m, p, sizeof m);
  m.reserved0 = m.reserved1 = nullptr;
  return move(m, s, wait);
}

CUresult set(CUdeviceptr to, size_t pitch, uint32_t value, unsigned size, size_t width, size_t height,
             CUstream handle, bool wait) {
  std::shared_ptr<CUctx_st> c;
  CUstream_st* stream = nullptr;
  if (const CUresult e = stream_of(handle, &c, &stream)) return e;
  if (wait)
    if (const CUresult e = refuse_unsafe_call()) return e;
  if (width == 0 || height == 0) return CUDA_SUCCESS;
  const CUDA_MEMSET_NODE_PARAMS p = {to, pitch, value, size, width, height};
  Step step;
  if (const CUresult e = set_step(*c, p, &step)) return e;
  if (wait)
    if (const CUresult e = refuse_wait(*stream)) return e;
  if (capturing(*stream)) return capture(*stream, c, SetNode{p});
  step.effect.lazy |= wait;
  uint64_t sequence = 0;
  if (const CUresult e = submit(*c, stream->channel, step.op, std::move(step.effect), &sequence)) return e;
  return wait ? wait_for(*c, stream->channel, sequence) : CUDA_SUCCESS;
}

CUresult peer(CUdeviceptr to, CUcontext a, CUdeviceptr from, CUcontext b, size_t n, CUstream s, bool wait) {
  if (const CUresult e = accepts(s)) return e;
  if (!find_context(a) || !find_context(b)) return CUDA_ERROR_INVALID_CONTEXT;
  return move_line(to, from, n, s, wait);
}

}  // namespace

namespace carve::sim {

CUresult move(const CUDA_MEMCPY3D& m, CUstream handle, bool wait) {
  std::shared_ptr<CUctx_st> c;
  CUstream_st* stream = nullptr;
  if (const CUresult e = stream_of(handle, &c, &stream)) return e;
  if (wait)
    if (const CUresult e = refuse_unsafe_call()) return e;
  if (m.WidthInBytes == 0 || m.Height == 0 || m.Depth == 0) return CUDA_SUCCESS;
  Step step;
  Pageable ends;
  if (const CUresult e = prepare(*c, m, &step, &ends)) return e;
  if (wait)
    if (const CUresult e = refuse_wait(*stream)) return e;
  if (capturing(*stream)) return capture(*stream, c, CopyNode{m});
  if (!wait && ends.from) wait = !stage(m, &step);
  if (ends.to) wait = true;
  step.effect.lazy |= wait;
  uint64_t sequence = 0;
  if (const CUresult e = submit(*c, stream->channel, step.op, std::move(step.effect), &sequence)) return e;
  return wait ? wait_for(*c, stream->channel, sequence) : CUDA_SUCCESS;
}

CUresult copy_step(CUctx_st& c, const CUDA_MEMCPY3D& m, Step* out) {
  if (m.WidthInBytes == 0 || m.Height == 0 || m.Depth == 0) return CUDA_ERROR_INVALID_VALUE;
  Pageable ends;
  return prepare(c, m, out, &ends);
}

// Sets `elementSize` bytes of `value`, `width` times in each of `height` rows.
CUresult set_step(CUctx_st& c, const CUDA_MEMSET_NODE_PARAMS& p, Step* out) {
  const size_t size = p.elementSize, width = p.width, height = p.height;
  if ((size != 1 && size != 2 && size != 4) || width == 0 || height == 0) return CUDA_ERROR_INVALID_VALUE;
  const size_t pitch = height == 1 ? width * size : p.pitch;
  uint64_t row = 0, bytes = 0;
  if (__builtin_mul_overflow(width, size, &row) || __builtin_mul_overflow(pitch, height - 1, &bytes) ||
      pitch < row || p.dst % size)
    return CUDA_ERROR_INVALID_VALUE;
  char* t = static_cast<char*>(heap_bytes(p.dst, bytes + row));
  HeapRecord a;
  if (!t) return CUDA_ERROR_INVALID_VALUE;
  if (!on_device(p.dst) && (!heap_find(p.dst, &a) || bytes + row > a.bytes - (p.dst - a.base)))
    return CUDA_ERROR_INVALID_VALUE;
  if (!on_device(p.dst)) managed_touch(c, p.dst, bytes + row);
  out->op.kind = OpKind::on_device;
  out->op.duration_ns = copy_time(c.own_device(), out->op.kind, row * height);
  out->effect.lazy = on_device(p.dst);
  out->effect.run = [=, value = p.value](uint64_t) {
    for (size_t y = 0; y < height; ++y) {
      char* line = t + y * pitch;
      if (size == 1)
        std::memset(line, static_cast<int>(value), width);
      else
        for (size_t x = 0; x < width; ++x) std::memcpy(line + x * size, &value, size);
    }
  };
  return CUDA_SUCCESS;
}

}  // namespace carve::sim

// Linear copies. The first macro defines a synchronous call and its _ptds variant, the second an asynchronous
// call and its _ptsz variant. The 4 x 2 definitions differ in nothing else.
#define COPY(name, To, to, From, from)                                                                 \
  EXPORT CUresult name(To t, From f, size_t n) { return move_line(to, from, n, legacy_stream, true); } \
  EXPORT CUresult name##_ptds(To t, From f, size_t n) {                                                \
    return move_line(to, from, n, per_thread_default(), true);                                         \
  }
#define COPY_ASYNC(name, To, to, From, from)                                                            \
  EXPORT CUresult name(To t, From f, size_t n, CUstream s) { return move_line(to, from, n, s, false); } \
  EXPORT CUresult name##_ptsz(To t, From f, size_t n, CUstream s) {                                     \
    return move_line(to, from, n, per_thread(s), false);                                                \
  }
COPY(cuMemcpy, CUdeviceptr, t, CUdeviceptr, f)
COPY(cuMemcpyHtoD_v2, CUdeviceptr, t, const void*, address(f))
COPY(cuMemcpyDtoH_v2, void*, address(t), CUdeviceptr, f)
COPY(cuMemcpyDtoD_v2, CUdeviceptr, t, CUdeviceptr, f)
COPY_ASYNC(cuMemcpyAsync, CUdeviceptr, t, CUdeviceptr, f)
COPY_ASYNC(cuMemcpyHtoDAsync_v2, CUdeviceptr, t, const void*, address(f))
COPY_ASYNC(cuMemcpyDtoHAsync_v2, void*, address(t), CUdeviceptr, f)
COPY_ASYNC(cuMemcpyDtoDAsync_v2, CUdeviceptr, t, CUdeviceptr, f)
#undef COPY
#undef COPY_ASYNC

EXPORT CUresult cuMemcpyPeer(CUdeviceptr t, CUcontext a, CUdeviceptr f, CUcontext b, size_t n) {
  return peer(t, a, f, b, n, legacy_stream, true);
}
EXPORT CUresult cuMemcpyPeer_ptds(CUdeviceptr t, CUcontext a, CUdeviceptr f, CUcontext b, size_t n) {
  return peer(t, a, f, b, n, per_thread_default(), true);
}
EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr t, CUcontext a, CUdeviceptr f, CUcontext b, size_t n,
                                  CUstream s) {
  return peer(t, a, f, b, n, s, false);
}
EXPORT CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr t, CUcontext a, CUdeviceptr f, CUcontext b, size_t n,
                                       CUstream s) {
  return peer(t, a, f, b, n, per_thread(s), false);
}

EXPORT CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* m) { return move_2d(m, legacy_stream, true); }
EXPORT CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D* m) { return move_2d(m, per_thread_default(), true); }
EXPORT CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* m) { return move_2d(m, legacy_stream, true); }
EXPORT CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D* m) {
  return move_2d(m, per_thread_default(), true);
}
EXPORT CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* m, CUstream s) { return move_2d(m, s, false); }
EXPORT CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D* m, CUstream s) {
  return move_2d(m, per_thread(s), false);
}
EXPORT CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* m) { return move_3d(m, legacy_stream, true); }
EXPORT CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D* m) { return move_3d(m, per_thread_default(), true); }
EXPORT CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* m, CUstream s) { return move_3d(m, s, false); }
EXPORT CUresult cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D* m, CUstream s) {
  return move_3d(m, per_thread(s), false);
}
EXPORT CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* m) { return move_3d(m, legacy_stream, true); }
EXPORT CUresult cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER* m) {
  return move_3d(m, per_thread_default(), true);
}
EXPORT CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* m, CUstream s) { return move_3d(m, s, false); }
EXPORT CUresult cuMemcpy3DPeerAsync_ptsz(const CUDA_MEMCPY3D_PEER* m, CUstream s) {
  return move_3d(m, per_thread(s), false);
}

// Sets of 8, 16 and 32 bits, linear or in rows, synchronous or in a stream.
#define SETS(bits, Value)                                                                                 \
  EXPORT CUresult cuMemsetD##bits##_v2(CUdeviceptr t, Value v, size_t n) {                                \
    return set(t, 0, v, bits / 8, n, 1, legacy_stream, true);                                             \
  }                                                                                                       \
  EXPORT CUresult cuMemsetD##bits##_v2_ptds(CUdeviceptr t, Value v, size_t n) {                           \
    return set(t, 0, v, bits / 8, n, 1, per_thread_default(), true);                                      \
  }                                                                                                       \
  EXPORT CUresult cuMemsetD##bits##Async(CUdeviceptr t, Value v, size_t n, CUstream s) {                  \
    return set(t, 0, v, bits / 8, n, 1, s, false);                                                        \
  }                                                                                                       \
  EXPORT CUresult cuMemsetD##bits##Async_ptsz(CUdeviceptr t, Value v, size_t n, CUstream s) {             \
    return set(t, 0, v, bits / 8, n, 1, per_thread(s), false);                                            \
  }                                                                                                       \
  EXPORT CUresult cuMemsetD2D##bits##_v2(CUdeviceptr t, size_t pitch, Value v, size_t w, size_t h) {      \
    return set(t, pitch, v, bits / 8, w, h, legacy_stream, true);                                         \
  }                                                                                                       \
  EXPORT CUresult cuMemsetD2D##bits##_v2_ptds(CUdeviceptr t, size_t pitch, Value v, size_t w, size_t h) { \
    return set(t, pitch, v, bits / 8, w, h, per_thread_default(), true);                                  \
  }                                                                                                       \
  EXPORT CUresult cuMemsetD2D##bits##Async(CUdeviceptr t, size_t pitch, Value v, size_t w, size_t h,      \
                                           CUstream s) {                                                  \
    return set(t, pitch, v, bits / 8, w, h, s, false);                                                    \
  }                                                                                                       \
  EXPORT CUresult cuMemsetD2D##bits##Async_ptsz(CUdeviceptr t, size_t pitch, Value v, size_t w, size_t h, \
                                                CUstream s) {                                             \
    return set(t, pitch, v, bits / 8, w, h, per_thread(s), false);                                        \
  }
SETS(8, unsigned char)
SETS(16, unsigned short)
SETS(32, unsigned int)
#undef SETS
