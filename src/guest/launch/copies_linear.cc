// Linear copies, in all forms (paced_copy.h). Copies with rows and planes are in copies_strided.cc.
#include "guest/launch/paced_copy.h"

using namespace carve::guest;

namespace {

bool is_on_host(CUdeviceptr at) {
  unsigned type = 0;
  // Memory that the driver does not know is host memory.
  return driver<&cuPointerGetAttribute>(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at) != CUDA_SUCCESS ||
         type == CU_MEMORYTYPE_HOST;
}

Copy unified(CUdeviceptr to, CUdeviceptr from, size_t bytes, uint64_t stream, bool plain) {
  if (bytes < paced_bytes || attached() == nullptr) return {Direction::inside, bytes, stream, plain};
  if (is_on_host(from)) return {Direction::to_device, bytes, stream, plain};
  if (is_on_host(to)) return {Direction::to_host, bytes, stream, plain};
  return {Direction::inside, bytes, stream};
}

// A copy that uses two devices' copy engines and the links between them.
Copy between_devices(size_t bytes, uint64_t stream, bool plain) {
  return {Direction::inside, bytes, stream, plain, false};
}

// Adds up copies between any kinds of memory. They are counted as copies inside the device and are not paced.
Copy summed(const size_t* sizes, size_t count, uint64_t stream) {
  uint64_t bytes = 0;
  for (size_t i = 0; sizes != nullptr && i < count; ++i) bytes += sizes[i];
  return {Direction::inside, bytes, stream, false, false};
}

}  // namespace

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copied(unified(to, from, bytes, legacy_stream, true),
                [=] { return driver<&cuMemcpy>(to, from, bytes); });
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copied(unified(to, from, bytes, named(stream), false),
                [=] { return driver<&cuMemcpyAsync>(to, from, bytes, stream); });
}

CUresult cuMemcpyAsync_ptsz(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copied(unified(to, from, bytes, named(stream, true), false),
                [=] { return driver<&cuMemcpyAsync_ptsz>(to, from, bytes, stream); });
}

CUresult cuMemcpyAtoA(CUarray to, unsigned to_offset, CUarray from, unsigned from_offset, unsigned bytes) {
  return copied(Copy{Direction::inside, bytes, legacy_stream},
                [=] { return driver<&cuMemcpyAtoA>(to, to_offset, from, from_offset, bytes); });
}

CUresult cuMemcpyAtoA_v2(CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t bytes) {
  return copied(Copy{Direction::inside, bytes, legacy_stream},
                [=] { return driver<&cuMemcpyAtoA_v2>(to, to_offset, from, from_offset, bytes); });
}

CUresult cuMemcpyAtoA_v2_ptds(CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t bytes) {
  return copied(Copy{Direction::inside, bytes, per_thread_stream},
                [=] { return driver<&cuMemcpyAtoA_v2_ptds>(to, to_offset, from, from_offset, bytes); });
}

CUresult cuMemcpyAtoD(CUdeviceptr_v1 to, CUarray from, unsigned from_offset, unsigned bytes) {
  return copied(Copy{Direction::inside, bytes, legacy_stream},
                [=] { return driver<&cuMemcpyAtoD>(to, from, from_offset, bytes); });
}

CUresult cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, size_t from_offset, size_t bytes) {
  return copied(Copy{Direction::inside, bytes, legacy_stream},
                [=] { return driver<&cuMemcpyAtoD_v2>(to, from, from_offset, bytes); });
}

CUresult cuMemcpyAtoD_v2_ptds(CUdeviceptr to, CUarray from, size_t from_offset, size_t bytes) {
  return copied(Copy{Direction::inside, bytes, per_thread_stream},
                [=] { return driver<&cuMemcpyAtoD_v2_ptds>(to, from, from_offset, bytes); });
}

CUresult cuMemcpyAtoH(void* to, CUarray from, unsigned from_offset, unsigned bytes) {
  return copied(Copy{Direction::to_host, bytes, legacy_stream, true},
                [=] { return driver<&cuMemcpyAtoH>(to, from, from_offset, bytes); });
}

CUresult cuMemcpyAtoHAsync(void* to, CUarray from, unsigned from_offset, unsigned bytes, CUstream stream) {
  return copied(Copy{Direction::to_host, bytes, named(stream)},
                [=] { return driver<&cuMemcpyAtoHAsync>(to, from, from_offset, bytes, stream); });
}

CUresult cuMemcpyAtoHAsync_v2(void* to, CUarray from, size_t from_offset, size_t bytes, CUstream stream) {
  return copied(Copy{Direction::to_host, bytes, named(stream)},
                [=] { return driver<&cuMemcpyAtoHAsync_v2>(to, from, from_offset, bytes, stream); });
}

CUresult cuMemcpyAtoHAsync_v2_ptsz(void* to, CUarray from, size_t from_offset, size_t bytes,
                                   CUstream stream) {
  return copied(Copy{Direction::to_host, bytes, named(stream, true)},
                [=] { return driver<&cuMemcpyAtoHAsync_v2_ptsz>(to, from, from_offset, bytes, stream); });
}

CUresult cuMemcpyAtoH_v2(void* to, CUarray from, size_t from_offset, size_t bytes) {
  return copied(Copy{Direction::to_host, bytes, legacy_stream, true},
                [=] { return driver<&cuMemcpyAtoH_v2>(to, from, from_offset, bytes); });
}

CUresult cuMemcpyAtoH_v2_ptds(void* to, CUarray from, size_t from_offset, size_t bytes) {
  return copied(Copy{Direction::to_host, bytes, per_thread_stream, true},
                [=] { return driver<&cuMemcpyAtoH_v2_ptds>(to, from, from_offset, bytes); });
}

// CUDA 13.2: cuMemcpyAsync with hints about the locations of its operands.
CUresult cuMemcpyWithAttributesAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUmemcpyAttributes* attr,
                                     CUstream stream) {
  return copied(unified(to, from, bytes, named(stream), false),
                [=] { return driver<&cuMemcpyWithAttributesAsync>(to, from, bytes, attr, stream); });
}

CUresult cuMemcpyWithAttributesAsync_ptsz(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                          CUmemcpyAttributes* attr, CUstream stream) {
  return copied(unified(to, from, bytes, named(stream, true), false),
                [=] { return driver<&cuMemcpyWithAttributesAsync_ptsz>(to, from, bytes, attr, stream); });
}

CUresult cuMemcpyBatchAsync(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                            CUmemcpyAttributes* attrs, size_t* attrs_idxs, size_t num_attrs, size_t* fail_idx,
                            CUstream stream) {
  return copied(summed(sizes, count, named(stream)), [=] {
    return driver<&cuMemcpyBatchAsync>(dsts, srcs, sizes, count, attrs, attrs_idxs, num_attrs, fail_idx,
                                       stream);
  });
}

CUresult cuMemcpyBatchAsync_ptsz(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                                 CUmemcpyAttributes* attrs, size_t* attrs_idxs, size_t num_attrs,
                                 size_t* fail_idx, CUstream stream) {
  return copied(summed(sizes, count, named(stream, true)), [=] {
    return driver<&cuMemcpyBatchAsync_ptsz>(dsts, srcs, sizes, count, attrs, attrs_idxs, num_attrs, fail_idx,
                                            stream);
  });
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                               CUmemcpyAttributes* attrs, size_t* attrs_idxs, size_t num_attrs,
                               CUstream stream) {
  return copied(summed(sizes, count, named(stream)), [=] {
    return driver<&cuMemcpyBatchAsync_v2>(dsts, srcs, sizes, count, attrs, attrs_idxs, num_attrs, stream);
  });
}

CUresult cuMemcpyBatchAsync_v2_ptsz(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                                    CUmemcpyAttributes* attrs, size_t* attrs_idxs, size_t num_attrs,
                                    CUstream stream) {
  return copied(summed(sizes, count, named(stream, true)), [=] {
    return driver<&cuMemcpyBatchAsync_v2_ptsz>(dsts, srcs, sizes, count, attrs, attrs_idxs, num_attrs,
                                               stream);
  });
}

CUresult cuMemcpyDtoA(CUarray to, unsigned to_offset, CUdeviceptr_v1 from, unsigned bytes) {
  return copied(Copy{Direction::inside, bytes, legacy_stream},
                [=] { return driver<&cuMemcpyDtoA>(to, to_offset, from, bytes); });
}

CUresult cuMemcpyDtoA_v2(CUarray to, size_t to_offset, CUdeviceptr from, size_t bytes) {
  return copied(Copy{Direction::inside, bytes, legacy_stream},
                [=] { return driver<&cuMemcpyDtoA_v2>(to, to_offset, from, bytes); });
}

CUresult cuMemcpyDtoA_v2_ptds(CUarray to, size_t to_offset, CUdeviceptr from, size_t bytes) {
  return copied(Copy{Direction::inside, bytes, per_thread_stream},
                [=] { return driver<&cuMemcpyDtoA_v2_ptds>(to, to_offset, from, bytes); });
}

CUresult cuMemcpyDtoD(CUdeviceptr_v1 to, CUdeviceptr_v1 from, unsigned bytes) {
  return copied(Copy{Direction::inside, bytes, legacy_stream},
                [=] { return driver<&cuMemcpyDtoD>(to, from, bytes); });
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr_v1 to, CUdeviceptr_v1 from, unsigned bytes, CUstream stream) {
  return copied(Copy{Direction::inside, bytes, named(stream)},
                [=] { return driver<&cuMemcpyDtoDAsync>(to, from, bytes, stream); });
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copied(Copy{Direction::inside, bytes, named(stream)},
                [=] { return driver<&cuMemcpyDtoDAsync_v2>(to, from, bytes, stream); });
}

CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copied(Copy{Direction::inside, bytes, named(stream, true)},
                [=] { return driver<&cuMemcpyDtoDAsync_v2_ptsz>(to, from, bytes, stream); });
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copied(Copy{Direction::inside, bytes, legacy_stream},
                [=] { return driver<&cuMemcpyDtoD_v2>(to, from, bytes); });
}

CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copied(Copy{Direction::inside, bytes, per_thread_stream},
                [=] { return driver<&cuMemcpyDtoD_v2_ptds>(to, from, bytes); });
}

CUresult cuMemcpyDtoH(void* to, CUdeviceptr_v1 from, unsigned bytes) {
  return copied(Copy{Direction::to_host, bytes, legacy_stream, true},
                [=] { return driver<&cuMemcpyDtoH>(to, from, bytes); });
}

CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr_v1 from, unsigned bytes, CUstream stream) {
  return copied(Copy{Direction::to_host, bytes, named(stream)},
                [=] { return driver<&cuMemcpyDtoHAsync>(to, from, bytes, stream); });
}

CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copied(Copy{Direction::to_host, bytes, named(stream)},
                [=] { return driver<&cuMemcpyDtoHAsync_v2>(to, from, bytes, stream); });
}

CUresult cuMemcpyDtoHAsync_v2_ptsz(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copied(Copy{Direction::to_host, bytes, named(stream, true)},
                [=] { return driver<&cuMemcpyDtoHAsync_v2_ptsz>(to, from, bytes, stream); });
}

CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  return copied(Copy{Direction::to_host, bytes, legacy_stream, true},
                [=] { return driver<&cuMemcpyDtoH_v2>(to, from, bytes); });
}

CUresult cuMemcpyDtoH_v2_ptds(void* to, CUdeviceptr from, size_t bytes) {
  return copied(Copy{Direction::to_host, bytes, per_thread_stream, true},
                [=] { return driver<&cuMemcpyDtoH_v2_ptds>(to, from, bytes); });
}

CUresult cuMemcpyHtoA(CUarray to, unsigned to_offset, const void* from, unsigned bytes) {
  return copied(Copy{Direction::to_device, bytes, legacy_stream, true},
                [=] { return driver<&cuMemcpyHtoA>(to, to_offset, from, bytes); });
}

CUresult cuMemcpyHtoAAsync(CUarray to, unsigned to_offset, const void* from, unsigned bytes,
                           CUstream stream) {
  return copied(Copy{Direction::to_device, bytes, named(stream)},
                [=] { return driver<&cuMemcpyHtoAAsync>(to, to_offset, from, bytes, stream); });
}

CUresult cuMemcpyHtoAAsync_v2(CUarray to, size_t to_offset, const void* from, size_t bytes, CUstream stream) {
  return copied(Copy{Direction::to_device, bytes, named(stream)},
                [=] { return driver<&cuMemcpyHtoAAsync_v2>(to, to_offset, from, bytes, stream); });
}

CUresult cuMemcpyHtoAAsync_v2_ptsz(CUarray to, size_t to_offset, const void* from, size_t bytes,
                                   CUstream stream) {
  return copied(Copy{Direction::to_device, bytes, named(stream, true)},
                [=] { return driver<&cuMemcpyHtoAAsync_v2_ptsz>(to, to_offset, from, bytes, stream); });
}

CUresult cuMemcpyHtoA_v2(CUarray to, size_t to_offset, const void* from, size_t bytes) {
  return copied(Copy{Direction::to_device, bytes, legacy_stream, true},
                [=] { return driver<&cuMemcpyHtoA_v2>(to, to_offset, from, bytes); });
}

CUresult cuMemcpyHtoA_v2_ptds(CUarray to, size_t to_offset, const void* from, size_t bytes) {
  return copied(Copy{Direction::to_device, bytes, per_thread_stream, true},
                [=] { return driver<&cuMemcpyHtoA_v2_ptds>(to, to_offset, from, bytes); });
}

CUresult cuMemcpyHtoD(CUdeviceptr_v1 to, const void* from, unsigned bytes) {
  return copied(Copy{Direction::to_device, bytes, legacy_stream, true},
                [=] { return driver<&cuMemcpyHtoD>(to, from, bytes); });
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr_v1 to, const void* from, unsigned bytes, CUstream stream) {
  return copied(Copy{Direction::to_device, bytes, named(stream)},
                [=] { return driver<&cuMemcpyHtoDAsync>(to, from, bytes, stream); });
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return copied(Copy{Direction::to_device, bytes, named(stream)},
                [=] { return driver<&cuMemcpyHtoDAsync_v2>(to, from, bytes, stream); });
}

CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return copied(Copy{Direction::to_device, bytes, named(stream, true)},
                [=] { return driver<&cuMemcpyHtoDAsync_v2_ptsz>(to, from, bytes, stream); });
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  return copied(Copy{Direction::to_device, bytes, legacy_stream, true},
                [=] { return driver<&cuMemcpyHtoD_v2>(to, from, bytes); });
}

CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr to, const void* from, size_t bytes) {
  return copied(Copy{Direction::to_device, bytes, per_thread_stream, true},
                [=] { return driver<&cuMemcpyHtoD_v2_ptds>(to, from, bytes); });
}

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                      size_t bytes) {
  return copied(between_devices(bytes, legacy_stream, true),
                [=] { return driver<&cuMemcpyPeer>(to, to_context, from, from_context, bytes); });
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                           size_t bytes, CUstream stream) {
  return copied(between_devices(bytes, named(stream), false), [=] {
    return driver<&cuMemcpyPeerAsync>(to, to_context, from, from_context, bytes, stream);
  });
}

CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                                CUcontext from_context, size_t bytes, CUstream stream) {
  return copied(between_devices(bytes, named(stream, true), false), [=] {
    return driver<&cuMemcpyPeerAsync_ptsz>(to, to_context, from, from_context, bytes, stream);
  });
}

CUresult cuMemcpyPeer_ptds(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                           size_t bytes) {
  return copied(between_devices(bytes, per_thread_stream, true),
                [=] { return driver<&cuMemcpyPeer_ptds>(to, to_context, from, from_context, bytes); });
}

CUresult cuMemcpy_ptds(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copied(unified(to, from, bytes, per_thread_stream, true),
                [=] { return driver<&cuMemcpy_ptds>(to, from, bytes); });
}
