// Stream memory operations: a stream writes a word, or waits until a word has a value (CUDA driver API,
// "Stream Memory Operations"). A write is a mark whose effect is the store. A wait is a gate. The service
// thread polls it first after 50 us and then less and less often, down to every 3 ms, so that an endless wait
// costs little. A write by one of this process's streams wakes the thread immediately; a write by the host is
// seen at the next poll.
#include <algorithm>
#include <atomic>

#include "sim/libcuda/capture.h"
#include "sim/libcuda/heap.h"
#include "sim/libcuda/step.h"

using namespace carve::sim;

namespace {

constexpr uint64_t first_poll = 50'000;
constexpr unsigned max_batch_operations = 256;

template <class Word>
bool holds(Word value, Word wanted, unsigned how) {
  switch (how) {
    case CU_STREAM_WAIT_VALUE_GEQ: return static_cast<std::make_signed_t<Word>>(value - wanted) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ: return value == wanted;
    case CU_STREAM_WAIT_VALUE_AND: return (value & wanted) != 0;
    default: return static_cast<Word>(~(value | wanted)) != 0;
  }
}

// Returns the address of the word in this process, or nullptr if a stream may not access it.
void* word_at(CUdeviceptr address, size_t bytes) {
  HeapRecord a;
  if (address % bytes || !heap_find(address, &a)) return nullptr;
  return heap_bytes(address, bytes);
}

template <class Word>
CUresult wait_step(CUdeviceptr address, Word wanted, unsigned flags, Step* out) {
  if (flags & CU_STREAM_WAIT_VALUE_FLUSH) return CUDA_ERROR_NOT_SUPPORTED;
  auto* const word = static_cast<Word*>(word_at(address, sizeof(Word)));
  if (!word || flags > CU_STREAM_WAIT_VALUE_NOR) return CUDA_ERROR_INVALID_VALUE;
  out->op.kind = OpKind::host;
  out->effect.host = true;
  out->effect.gate = [word, wanted, flags, looks = 0u](uint64_t now) mutable -> uint64_t {
    if (holds(std::atomic_ref(*word).load(std::memory_order_acquire), wanted, flags)) return 0;
    return now + (first_poll << std::min(looks++ / 16, 6u));
  };
  return CUDA_SUCCESS;
}

template <class Word>
CUresult write_step(CUdeviceptr address, Word value, unsigned flags, Step* out) {
  auto* const word = static_cast<Word*>(word_at(address, sizeof(Word)));
  if (!word || flags > CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER) return CUDA_ERROR_INVALID_VALUE;
  out->op.kind = OpKind::mark;
  out->effect.run = [word, value](uint64_t) {
    std::atomic_ref(*word).store(value, std::memory_order_release);
    call_service();
  };
  return CUDA_SUCCESS;
}

CUresult one_step(const CUstreamBatchMemOpParams& p, Step* out) {
  switch (p.operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      return wait_step(p.waitValue.address, p.waitValue.value, p.waitValue.flags, out);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      return wait_step(p.waitValue.address, p.waitValue.value64, p.waitValue.flags, out);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      return write_step(p.writeValue.address, p.writeValue.value, p.writeValue.flags, out);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      return write_step(p.writeValue.address, p.writeValue.value64, p.writeValue.flags, out);
    case CU_STREAM_MEM_OP_BARRIER: return out->op.kind = OpKind::mark, CUDA_SUCCESS;
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult batch(CUstream handle, const CUstreamBatchMemOpParams* ops, unsigned count, unsigned flags) {
  std::shared_ptr<CUctx_st> c;
  CUstream_st* stream = nullptr;
  if (const CUresult e = stream_of(handle, &c, &stream)) return e;
  if (!ops || !count || count > max_batch_operations || flags) return CUDA_ERROR_INVALID_VALUE;
  std::vector<Step> steps;
  if (const CUresult e = memory_operations({ops, count}, &steps)) return e;
  if (capturing(*stream)) return capture(*stream, c, BatchNode{{ops, ops + count}, flags});
  for (Step& s : steps)
    if (const CUresult e = submit_after(c, stream->channel, {}, std::move(s), nullptr)) return e;
  return CUDA_SUCCESS;
}

// A single operation is implemented as a batch of one.
template <class Value>
CUresult wait_value(CUstream s, CUdeviceptr address, Value value, unsigned flags) {
  CUstreamBatchMemOpParams p = {};
  p.operation = sizeof value == 4 ? CU_STREAM_MEM_OP_WAIT_VALUE_32 : CU_STREAM_MEM_OP_WAIT_VALUE_64;
  p.waitValue.address = address;
  p.waitValue.value64 = value;
  p.waitValue.flags = flags;
  return batch(s, &p, 1, 0);
}
template <class Value>
CUresult write_value(CUstream s, CUdeviceptr address, Value value, unsigned flags) {
  CUstreamBatchMemOpParams p = {};
  p.operation = sizeof value == 4 ? CU_STREAM_MEM_OP_WRITE_VALUE_32 : CU_STREAM_MEM_OP_WRITE_VALUE_64;
  p.writeValue.address = address;
  p.writeValue.value64 = value;
  p.writeValue.flags = flags;
  return batch(s, &p, 1, 0);
}

}  // namespace

namespace carve::sim {

CUresult memory_operations(std::span<const CUstreamBatchMemOpParams> ops, std::vector<Step>* out) {
  for (const CUstreamBatchMemOpParams& p : ops)
    if (const CUresult e = one_step(p, &out->emplace_back())) return e;
  return CUDA_SUCCESS;
}

}  // namespace carve::sim

// Each call has four names. Version 2 does the same here, and the _ptsz variants use the per-thread default
// stream.
#define VALUE(name, Value, call)                                                           \
  EXPORT CUresult name(CUstream s, CUdeviceptr a, Value v, unsigned int flags) {           \
    return call(s, a, v, flags);                                                           \
  }                                                                                        \
  EXPORT CUresult name##_v2(CUstream s, CUdeviceptr a, Value v, unsigned int flags) {      \
    return call(s, a, v, flags);                                                           \
  }                                                                                        \
  EXPORT CUresult name##_ptsz(CUstream s, CUdeviceptr a, Value v, unsigned int flags) {    \
    return call(per_thread(s), a, v, flags);                                               \
  }                                                                                        \
  EXPORT CUresult name##_v2_ptsz(CUstream s, CUdeviceptr a, Value v, unsigned int flags) { \
    return call(per_thread(s), a, v, flags);                                               \
  }
VALUE(cuStreamWaitValue32, cuuint32_t, wait_value)
VALUE(cuStreamWaitValue64, cuuint64_t, wait_value)
VALUE(cuStreamWriteValue32, cuuint32_t, write_value)
VALUE(cuStreamWriteValue64, cuuint64_t, write_value)
#undef VALUE

EXPORT CUresult cuStreamBatchMemOp(CUstream s, unsigned int n, CUstreamBatchMemOpParams* ops,
                                   unsigned int flags) {
  return batch(s, ops, n, flags);
}
EXPORT CUresult cuStreamBatchMemOp_v2(CUstream s, unsigned int n, CUstreamBatchMemOpParams* ops,
                                      unsigned int flags) {
  return batch(s, ops, n, flags);
}
EXPORT CUresult cuStreamBatchMemOp_ptsz(CUstream s, unsigned int n, CUstreamBatchMemOpParams* ops,
                                        unsigned int flags) {
  return batch(per_thread(s), ops, n, flags);
}
EXPORT CUresult cuStreamBatchMemOp_v2_ptsz(CUstream s, unsigned int n, CUstreamBatchMemOpParams* ops,
                                           unsigned int flags) {
  return batch(per_thread(s), ops, n, flags);
}
