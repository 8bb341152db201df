// Strided copies, with rows and planes, and fills (paced_copy.h).
#include "guest/launch/paced_copy.h"

using namespace carve::guest;

namespace {

template <class Shape>
uint64_t planes(const Shape& s) {
  if constexpr (requires { s.Depth; }) return s.Depth;
  return 1;
}

// `plain` is the form without Async in its name.
template <class Shape>
Copy shaped(const Shape* s, uint64_t stream, bool plain) {
  if (s == nullptr) return {Direction::inside, 0, stream};
  const uint64_t bytes = uint64_t{s->WidthInBytes} * s->Height * planes(*s);
  const auto is = [](CUmemorytype type, CUmemorytype wanted) { return type == wanted; };
  if (is(s->srcMemoryType, CU_MEMORYTYPE_HOST)) return {Direction::to_device, bytes, stream, plain};
  if (is(s->dstMemoryType, CU_MEMORYTYPE_HOST)) return {Direction::to_host, bytes, stream, plain};
  // Either side of a unified address pair may be the host.
  const bool known =
      !is(s->srcMemoryType, CU_MEMORYTYPE_UNIFIED) && !is(s->dstMemoryType, CU_MEMORYTYPE_UNIFIED);
  const bool one_device = !requires { s->srcContext; };
  return {Direction::inside, bytes, stream, plain && !known, known && one_device};
}

Copy filled(uint64_t width, uint64_t count, uint64_t rows, uint64_t stream) {
  return {Direction::inside, width * count * rows, stream};
}

}  // namespace

CUresult cuMemcpy2D(const CUDA_MEMCPY2D_v1* copy) {
  return copied(shaped(copy, legacy_stream, true), [=] { return driver<&cuMemcpy2D>(copy); });
}

CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D_v1* copy, CUstream stream) {
  return copied(shaped(copy, named(stream), false), [=] { return driver<&cuMemcpy2DAsync>(copy, stream); });
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return copied(shaped(copy, named(stream), false),
                [=] { return driver<&cuMemcpy2DAsync_v2>(copy, stream); });
}

CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return copied(shaped(copy, named(stream, true), false),
                [=] { return driver<&cuMemcpy2DAsync_v2_ptsz>(copy, stream); });
}

CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D_v1* copy) {
  return copied(shaped(copy, legacy_stream, true), [=] { return driver<&cuMemcpy2DUnaligned>(copy); });
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) {
  return copied(shaped(copy, legacy_stream, true), [=] { return driver<&cuMemcpy2DUnaligned_v2>(copy); });
}

CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D* copy) {
  return copied(shaped(copy, per_thread_stream, true),
                [=] { return driver<&cuMemcpy2DUnaligned_v2_ptds>(copy); });
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) {
  return copied(shaped(copy, legacy_stream, true), [=] { return driver<&cuMemcpy2D_v2>(copy); });
}

CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D* copy) {
  return copied(shaped(copy, per_thread_stream, true), [=] { return driver<&cuMemcpy2D_v2_ptds>(copy); });
}

CUresult cuMemcpy3D(const CUDA_MEMCPY3D_v1* copy) {
  return copied(shaped(copy, legacy_stream, true), [=] { return driver<&cuMemcpy3D>(copy); });
}

CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D_v1* copy, CUstream stream) {
  return copied(shaped(copy, named(stream), false), [=] { return driver<&cuMemcpy3DAsync>(copy, stream); });
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) {
  return copied(shaped(copy, named(stream), false),
                [=] { return driver<&cuMemcpy3DAsync_v2>(copy, stream); });
}

CUresult cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D* copy, CUstream stream) {
  return copied(shaped(copy, named(stream, true), false),
                [=] { return driver<&cuMemcpy3DAsync_v2_ptsz>(copy, stream); });
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* copy) {
  return copied(shaped(copy, legacy_stream, true), [=] { return driver<&cuMemcpy3DPeer>(copy); });
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  return copied(shaped(copy, named(stream), false),
                [=] { return driver<&cuMemcpy3DPeerAsync>(copy, stream); });
}

CUresult cuMemcpy3DPeerAsync_ptsz(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  return copied(shaped(copy, named(stream, true), false),
                [=] { return driver<&cuMemcpy3DPeerAsync_ptsz>(copy, stream); });
}

CUresult cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER* copy) {
  return copied(shaped(copy, per_thread_stream, true), [=] { return driver<&cuMemcpy3DPeer_ptds>(copy); });
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy) {
  return copied(shaped(copy, legacy_stream, true), [=] { return driver<&cuMemcpy3D_v2>(copy); });
}

CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D* copy) {
  return copied(shaped(copy, per_thread_stream, true), [=] { return driver<&cuMemcpy3D_v2_ptds>(copy); });
}

CUresult cuMemsetD16(CUdeviceptr_v1 to, unsigned short value, unsigned count) {
  return copied(filled(2, count, 1, legacy_stream), [=] { return driver<&cuMemsetD16>(to, value, count); });
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  return copied(filled(2, count, 1, named(stream)),
                [=] { return driver<&cuMemsetD16Async>(to, value, count, stream); });
}

CUresult cuMemsetD16Async_ptsz(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  return copied(filled(2, count, 1, named(stream, true)),
                [=] { return driver<&cuMemsetD16Async_ptsz>(to, value, count, stream); });
}

CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) {
  return copied(filled(2, count, 1, legacy_stream),
                [=] { return driver<&cuMemsetD16_v2>(to, value, count); });
}

CUresult cuMemsetD16_v2_ptds(CUdeviceptr to, unsigned short value, size_t count) {
  return copied(filled(2, count, 1, per_thread_stream),
                [=] { return driver<&cuMemsetD16_v2_ptds>(to, value, count); });
}

CUresult cuMemsetD2D16(CUdeviceptr_v1 to, unsigned pitch, unsigned short value, unsigned width,
                       unsigned height) {
  return copied(filled(2, width, height, legacy_stream),
                [=] { return driver<&cuMemsetD2D16>(to, pitch, value, width, height); });
}

CUresult cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height,
                            CUstream stream) {
  return copied(filled(2, width, height, named(stream)),
                [=] { return driver<&cuMemsetD2D16Async>(to, pitch, value, width, height, stream); });
}

CUresult cuMemsetD2D16Async_ptsz(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                                 size_t height, CUstream stream) {
  return copied(filled(2, width, height, named(stream, true)),
                [=] { return driver<&cuMemsetD2D16Async_ptsz>(to, pitch, value, width, height, stream); });
}

CUresult cuMemsetD2D16_v2(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height) {
  return copied(filled(2, width, height, legacy_stream),
                [=] { return driver<&cuMemsetD2D16_v2>(to, pitch, value, width, height); });
}

CUresult cuMemsetD2D16_v2_ptds(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                               size_t height) {
  return copied(filled(2, width, height, per_thread_stream),
                [=] { return driver<&cuMemsetD2D16_v2_ptds>(to, pitch, value, width, height); });
}

CUresult cuMemsetD2D32(CUdeviceptr_v1 to, unsigned pitch, unsigned value, unsigned width, unsigned height) {
  return copied(filled(4, width, height, legacy_stream),
                [=] { return driver<&cuMemsetD2D32>(to, pitch, value, width, height); });
}

CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height,
                            CUstream stream) {
  return copied(filled(4, width, height, named(stream)),
                [=] { return driver<&cuMemsetD2D32Async>(to, pitch, value, width, height, stream); });
}

CUresult cuMemsetD2D32Async_ptsz(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height,
                                 CUstream stream) {
  return copied(filled(4, width, height, named(stream, true)),
                [=] { return driver<&cuMemsetD2D32Async_ptsz>(to, pitch, value, width, height, stream); });
}

CUresult cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height) {
  return copied(filled(4, width, height, legacy_stream),
                [=] { return driver<&cuMemsetD2D32_v2>(to, pitch, value, width, height); });
}

CUresult cuMemsetD2D32_v2_ptds(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height) {
  return copied(filled(4, width, height, per_thread_stream),
                [=] { return driver<&cuMemsetD2D32_v2_ptds>(to, pitch, value, width, height); });
}

CUresult cuMemsetD2D8(CUdeviceptr_v1 to, unsigned pitch, unsigned char value, unsigned width,
                      unsigned height) {
  return copied(filled(1, width, height, legacy_stream),
                [=] { return driver<&cuMemsetD2D8>(to, pitch, value, width, height); });
}

CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height,
                           CUstream stream) {
  return copied(filled(1, width, height, named(stream)),
                [=] { return driver<&cuMemsetD2D8Async>(to, pitch, value, width, height, stream); });
}

CUresult cuMemsetD2D8Async_ptsz(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                                size_t height, CUstream stream) {
  return copied(filled(1, width, height, named(stream, true)),
                [=] { return driver<&cuMemsetD2D8Async_ptsz>(to, pitch, value, width, height, stream); });
}

CUresult cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height) {
  return copied(filled(1, width, height, legacy_stream),
                [=] { return driver<&cuMemsetD2D8_v2>(to, pitch, value, width, height); });
}

CUresult cuMemsetD2D8_v2_ptds(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                              size_t height) {
  return copied(filled(1, width, height, per_thread_stream),
                [=] { return driver<&cuMemsetD2D8_v2_ptds>(to, pitch, value, width, height); });
}

CUresult cuMemsetD32(CUdeviceptr_v1 to, unsigned value, unsigned count) {
  return copied(filled(4, count, 1, legacy_stream), [=] { return driver<&cuMemsetD32>(to, value, count); });
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
  return copied(filled(4, count, 1, named(stream)),
                [=] { return driver<&cuMemsetD32Async>(to, value, count, stream); });
}

CUresult cuMemsetD32Async_ptsz(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
  return copied(filled(4, count, 1, named(stream, true)),
                [=] { return driver<&cuMemsetD32Async_ptsz>(to, value, count, stream); });
}

CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count) {
  return copied(filled(4, count, 1, legacy_stream),
                [=] { return driver<&cuMemsetD32_v2>(to, value, count); });
}

CUresult cuMemsetD32_v2_ptds(CUdeviceptr to, unsigned value, size_t count) {
  return copied(filled(4, count, 1, per_thread_stream),
                [=] { return driver<&cuMemsetD32_v2_ptds>(to, value, count); });
}

CUresult cuMemsetD8(CUdeviceptr_v1 to, unsigned char value, unsigned count) {
  return copied(filled(1, count, 1, legacy_stream), [=] { return driver<&cuMemsetD8>(to, value, count); });
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return copied(filled(1, count, 1, named(stream)),
                [=] { return driver<&cuMemsetD8Async>(to, value, count, stream); });
}

CUresult cuMemsetD8Async_ptsz(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return copied(filled(1, count, 1, named(stream, true)),
                [=] { return driver<&cuMemsetD8Async_ptsz>(to, value, count, stream); });
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
  return copied(filled(1, count, 1, legacy_stream), [=] { return driver<&cuMemsetD8_v2>(to, value, count); });
}

CUresult cuMemsetD8_v2_ptds(CUdeviceptr to, unsigned char value, size_t count) {
  return copied(filled(1, count, 1, per_thread_stream),
                [=] { return driver<&cuMemsetD8_v2_ptds>(to, value, count); });
}
