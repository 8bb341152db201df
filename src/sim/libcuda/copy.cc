// Copies and sets, in all their forms. Each form says from where, to where, how many rows and bytes, in which
// stream and whether the caller waits; `move` does the rest: checks the ranges, submits one operation of the
// right engine and moves the bytes when it ends. Twins: _ptds and _ptsz mean the thread's own default stream.
//
// What the caller may touch after the call returns follows the driver's documentation of synchronisation:
// copies from pageable memory have taken their bytes (up to 64 KiB are staged, more waits), copies to it have
// brought them; pinned memory is read and written later.
#include <algorithm>
#include <cstring>

#include "sim/libcuda/capture.h"
#include "sim/libcuda/heap.h"
#include "sim/libcuda/work.h"

using namespace carve::sim;

namespace {

constexpr uint64_t kStaged = 64 << 10;

// A box of bytes in linear memory: `rows` of `width` bytes, `pitch` apart, in `slices`, `rows_per_slice` rows
// apart.
struct Box {
  uint64_t address = 0;
  uint64_t pitch = 0;
  uint64_t slice_pitch = 0;
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

bool on_device(uint64_t address) { return heap_is_device_address(address); }

bool pageable(uint64_t address) {
  Allocation a;
  return !on_device(address) && !heap_find(address, &a);
}

// The operation of a copy, its range checked.
CUresult prepare(CUctx_st& c, const Box& to, const Box& from, const Extent& extent, Step* out) {
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(extent.width, extent.height, &bytes) ||
      __builtin_mul_overflow(bytes, extent.depth, &bytes))
    return CUDA_ERROR_INVALID_VALUE;
  if (!to.address || !from.address) return CUDA_ERROR_INVALID_VALUE;
  char* t = static_cast<char*>(heap_bytes(to.address, span(to, extent)));
  const char* f = static_cast<char*>(heap_bytes(from.address, span(from, extent)));
  if (!t || !f) return CUDA_ERROR_INVALID_VALUE;
  out->op.kind = !on_device(from.address) ? OpKind::to_device
                 : on_device(to.address)  ? OpKind::on_device
                                          : OpKind::to_host;
  out->op.duration_ns = copy_time(c.card(), out->op.kind, bytes);
  // The device's own memory is seen only through us, so nobody needs to wake for a copy inside of it.
  out->effect.lazy = on_device(to.address);
  out->effect.run = [t, f, to, from, extent](uint64_t) { copy_box(t, to, f, from, extent); };
  return CUDA_SUCCESS;
}

// The copy as a node describes it.
CopyNode described(const Box& to, const Box& from, const Extent& e) {
  CUDA_MEMCPY3D m = {};
  const auto rows = [&](const Box& b) { return b.pitch ? b.slice_pitch / b.pitch : 0; };
  m.srcMemoryType = on_device(from.address) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  m.dstMemoryType = on_device(to.address) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  m.srcDevice = from.address, m.srcHost = reinterpret_cast<const void*>(from.address);
  m.dstDevice = to.address, m.dstHost = reinterpret_cast<void*>(to.address);
  m.srcPitch = from.pitch, m.srcHeight = rows(from);
  m.dstPitch = to.pitch, m.dstHeight = rows(to);
  m.WidthInBytes = e.width, m.Height = e.height, m.Depth = e.depth;
  return {m};
}

CUresult move(const Box& to, const Box& from, const Extent& extent, CUstream handle, bool wait) {
  std::shared_ptr<CUctx_st> c;
  CUstream_st* stream = nullptr;
  if (const CUresult e = stream_of(handle, &c, &stream)) return e;
  if (wait)
    if (const CUresult e = refuse_unsafe_call()) return e;
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return CUDA_SUCCESS;
  Step step;
  if (const CUresult e = prepare(*c, to, from, extent, &step)) return e;
  if (wait)
    if (const CUresult e = refuse_wait(*stream)) return e;
  if (capturing(*stream)) return capture(*stream, c, described(to, from, extent));
  if (!wait && step.op.kind == OpKind::to_device && pageable(from.address)) {
    if (extent.width > kStaged || extent.height > 1 || extent.depth > 1) {
      wait = true;
    } else {
      char* t = static_cast<char*>(heap_bytes(to.address, extent.width));
      std::string staged(reinterpret_cast<const char*>(from.address), extent.width);
      step.effect.lazy = false;
      step.effect.run = [t, staged = std::move(staged)](uint64_t) { staged.copy(t, staged.size()); };
    }
  }
  if (step.op.kind == OpKind::to_host && pageable(to.address)) wait = true;
  step.effect.lazy |= wait;
  uint64_t sequence = 0;
  if (const CUresult e = submit(*c, stream->channel, step.op, std::move(step.effect), &sequence)) return e;
  return wait ? wait_for(*c, stream->channel, sequence) : CUDA_SUCCESS;
}

CUresult move_line(uint64_t to, uint64_t from, size_t bytes, CUstream s, bool wait) {
  return move({to}, {from}, {bytes, 1, 1}, s, wait);
}

uint64_t address(const void* p) { return reinterpret_cast<uint64_t>(p); }

// Where one side of a described copy lies; false for arrays, which this simulator does not have yet.
bool side(CUmemorytype type, const void* host, CUdeviceptr device, size_t x, size_t y, size_t z, size_t pitch,
          size_t height, Box* out) {
  if (type == CU_MEMORYTYPE_ARRAY) return false;
  const uint64_t base = type == CU_MEMORYTYPE_HOST ? address(host) : device;
  out->pitch = pitch;
  out->slice_pitch = pitch * height;
  out->address = base + z * out->slice_pitch + y * pitch + x;
  return true;
}

CUresult move_2d(const CUDA_MEMCPY2D* m, CUstream s, bool wait) {
  if (!m) return CUDA_ERROR_INVALID_VALUE;
  const size_t to_pitch = m->dstPitch ? m->dstPitch : m->WidthInBytes;
  const size_t from_pitch = m->srcPitch ? m->srcPitch : m->WidthInBytes;
  if (to_pitch < m->WidthInBytes || from_pitch < m->WidthInBytes) return CUDA_ERROR_INVALID_VALUE;
  Box to, from;
  if (!side(m->dstMemoryType, m->dstHost, m->dstDevice, m->dstXInBytes, m->dstY, 0, to_pitch, 0, &to) ||
      !side(m->srcMemoryType, m->srcHost, m->srcDevice, m->srcXInBytes, m->srcY, 0, from_pitch, 0, &from))
    return unsupported("cuMemcpy2D with arrays");
  return move(to, from, {m->WidthInBytes, m->Height, 1}, s, wait);
}

// The two sides and the extent of a described copy.
template <class Description>
CUresult sides_of(const Description& m, Box* to, Box* from, Extent* extent) {
  const size_t to_pitch = m.dstPitch ? m.dstPitch : m.WidthInBytes;
  const size_t from_pitch = m.srcPitch ? m.srcPitch : m.WidthInBytes;
  if (to_pitch < m.WidthInBytes || from_pitch < m.WidthInBytes) return CUDA_ERROR_INVALID_VALUE;
  if (!side(m.dstMemoryType, m.dstHost, m.dstDevice, m.dstXInBytes, m.dstY, m.dstZ, to_pitch,
            m.dstHeight ? m.dstHeight : m.Height, to) ||
      !side(m.srcMemoryType, m.srcHost, m.srcDevice, m.srcXInBytes, m.srcY, m.srcZ, from_pitch,
            m.srcHeight ? m.srcHeight : m.Height, from))
    return unsupported("cuMemcpy3D with arrays");
  *extent = {m.WidthInBytes, m.Height, m.Depth};
  return CUDA_SUCCESS;
}

template <class Description>
CUresult move_3d(const Description* m, CUstream s, bool wait) {
  if (!m) return CUDA_ERROR_INVALID_VALUE;
  Box to, from;
  Extent extent;
  if (const CUresult e = sides_of(*m, &to, &from, &extent)) return e;
  return move(to, from, extent, s, wait);
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

// A peer copy runs in the current context here; only the bytes matter to the program.
CUresult peer(CUdeviceptr to, CUcontext a, CUdeviceptr from, CUcontext b, size_t n, CUstream s, bool wait) {
  if (const CUresult e = entered()) return e;
  if (!find_context(a) || !find_context(b)) return CUDA_ERROR_INVALID_CONTEXT;
  return move_line(to, from, n, s, wait);
}

constexpr CUstream kLegacy = nullptr;
CUstream own() { return CU_STREAM_PER_THREAD; }

}  // namespace

namespace carve::sim {

CUresult copy_step(CUctx_st& c, const CUDA_MEMCPY3D& m, Step* out) {
  Box to, from;
  Extent extent;
  if (const CUresult e = sides_of(m, &to, &from, &extent)) return e;
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return CUDA_ERROR_INVALID_VALUE;
  return prepare(c, to, from, extent, out);
}

// `elementSize` bytes of `value`, `width` times in each of `height` rows.
CUresult set_step(CUctx_st& c, const CUDA_MEMSET_NODE_PARAMS& p, Step* out) {
  const size_t size = p.elementSize, width = p.width, height = p.height;
  if ((size != 1 && size != 2 && size != 4) || width == 0 || height == 0) return CUDA_ERROR_INVALID_VALUE;
  const size_t pitch = height == 1 ? width * size : p.pitch;
  uint64_t row = 0, bytes = 0;
  if (__builtin_mul_overflow(width, size, &row) || __builtin_mul_overflow(pitch, height - 1, &bytes) ||
      pitch < row || p.dst % size)
    return CUDA_ERROR_INVALID_VALUE;
  char* t = static_cast<char*>(heap_bytes(p.dst, bytes + row));
  Allocation a;
  if (!t) return CUDA_ERROR_INVALID_VALUE;
  if (!on_device(p.dst) && (!heap_find(p.dst, &a) || bytes + row > a.bytes - (p.dst - a.base)))
    return CUDA_ERROR_INVALID_VALUE;
  out->op.kind = OpKind::on_device;
  out->op.duration_ns = copy_time(c.card(), out->op.kind, row * height);
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

// Linear copies. The first macro makes a synchronous call and its _ptds twin, the second an asynchronous one
// and its _ptsz twin: 4 x 2 definitions that differ in nothing else.
#define COPY(name, To, to, From, from)                                                           \
  EXPORT CUresult name(To t, From f, size_t n) { return move_line(to, from, n, kLegacy, true); } \
  EXPORT CUresult name##_ptds(To t, From f, size_t n) { return move_line(to, from, n, own(), true); }
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
  return peer(t, a, f, b, n, kLegacy, true);
}
EXPORT CUresult cuMemcpyPeer_ptds(CUdeviceptr t, CUcontext a, CUdeviceptr f, CUcontext b, size_t n) {
  return peer(t, a, f, b, n, own(), true);
}
EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr t, CUcontext a, CUdeviceptr f, CUcontext b, size_t n,
                                  CUstream s) {
  return peer(t, a, f, b, n, s, false);
}
EXPORT CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr t, CUcontext a, CUdeviceptr f, CUcontext b, size_t n,
                                       CUstream s) {
  return peer(t, a, f, b, n, per_thread(s), false);
}

EXPORT CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* m) { return move_2d(m, kLegacy, true); }
EXPORT CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D* m) { return move_2d(m, own(), true); }
EXPORT CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* m) { return move_2d(m, kLegacy, true); }
EXPORT CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D* m) { return move_2d(m, own(), true); }
EXPORT CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* m, CUstream s) { return move_2d(m, s, false); }
EXPORT CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D* m, CUstream s) {
  return move_2d(m, per_thread(s), false);
}
EXPORT CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* m) { return move_3d(m, kLegacy, true); }
EXPORT CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D* m) { return move_3d(m, own(), true); }
EXPORT CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* m, CUstream s) { return move_3d(m, s, false); }
EXPORT CUresult cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D* m, CUstream s) {
  return move_3d(m, per_thread(s), false);
}
EXPORT CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* m) { return move_3d(m, kLegacy, true); }
EXPORT CUresult cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER* m) { return move_3d(m, own(), true); }
EXPORT CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* m, CUstream s) { return move_3d(m, s, false); }
EXPORT CUresult cuMemcpy3DPeerAsync_ptsz(const CUDA_MEMCPY3D_PEER* m, CUstream s) {
  return move_3d(m, per_thread(s), false);
}

// Sets of 8, 16 and 32 bits, in one line or in rows, synchronous to the host and in a stream.
#define SETS(bits, Value)                                                                                 \
  EXPORT CUresult cuMemsetD##bits##_v2(CUdeviceptr t, Value v, size_t n) {                                \
    return set(t, 0, v, bits / 8, n, 1, kLegacy, true);                                                   \
  }                                                                                                       \
  EXPORT CUresult cuMemsetD##bits##_v2_ptds(CUdeviceptr t, Value v, size_t n) {                           \
    return set(t, 0, v, bits / 8, n, 1, own(), true);                                                     \
  }                                                                                                       \
  EXPORT CUresult cuMemsetD##bits##Async(CUdeviceptr t, Value v, size_t n, CUstream s) {                  \
    return set(t, 0, v, bits / 8, n, 1, s, false);                                                        \
  }                                                                                                       \
  EXPORT CUresult cuMemsetD##bits##Async_ptsz(CUdeviceptr t, Value v, size_t n, CUstream s) {             \
    return set(t, 0, v, bits / 8, n, 1, per_thread(s), false);                                            \
  }                                                                                                       \
  EXPORT CUresult cuMemsetD2D##bits##_v2(CUdeviceptr t, size_t pitch, Value v, size_t w, size_t h) {      \
    return set(t, pitch, v, bits / 8, w, h, kLegacy, true);                                               \
  }                                                                                                       \
  EXPORT CUresult cuMemsetD2D##bits##_v2_ptds(CUdeviceptr t, size_t pitch, Value v, size_t w, size_t h) { \
    return set(t, pitch, v, bits / 8, w, h, own(), true);                                                 \
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
