// Streams, events and host functions. A stream is a channel of the model; an event is a place in one, whose
// time the model fixes; waiting for an event of the same device is a dependency, of another one a gate that
// the service thread opens.
#include <algorithm>
#include <utility>

#include "sim/libcuda/pool.h"
#include "sim/libcuda/process.h"
#include "sim/libcuda/work.h"

using namespace carve::sim;

namespace {

constexpr int kGreatestPriority = -5;

CUresult create_stream(CUstream* out, unsigned flags, int priority) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  if (!out || (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING))) return CUDA_ERROR_INVALID_VALUE;
  Process& p = process();
  const std::lock_guard lock(p.mutex);
  const bool blocking = !(flags & CU_STREAM_NON_BLOCKING);
  auto* s = new CUstream_st{c.get(), take_channel(*c, blocking), flags,
                            std::clamp(priority, kGreatestPriority, 0), p.next_id.fetch_add(1)};
  p.streams.insert(s);
  *out = s;
  return CUDA_SUCCESS;
}

struct At {
  std::shared_ptr<CUctx_st> context;
  CUstream_st* stream = nullptr;
};
CUresult at(CUstream handle, At* out) { return stream_of(handle, &out->context, &out->stream); }

CUresult stream_synchronize(CUstream handle) {
  At a;
  if (const CUresult e = at(handle, &a)) return e;
  const CUresult e = wait_channel(*a.context, a.stream->channel);
  if (e == CUDA_SUCCESS) release_unused(a.context->device);
  return e;
}

CUresult stream_query(CUstream handle) {
  At a;
  if (const CUresult e = at(handle, &a)) return e;
  return query_channel(*a.context, a.stream->channel);
}

Recording* known(CUevent event, std::shared_ptr<Recording>* keep, CUresult* e) {
  *e = entered();
  if (*e) return nullptr;
  const std::lock_guard lock(process().mutex);
  if (!process().events.contains(event)) {
    *e = CUDA_ERROR_INVALID_HANDLE;
    return nullptr;
  }
  *keep = event->recording;
  return keep->get();
}

CUresult record(CUevent event, CUstream handle) {
  At a;
  if (const CUresult e = at(handle, &a)) return e;
  {
    const std::lock_guard lock(process().mutex);
    if (!process().events.contains(event) || event->context != a.context.get())
      return CUDA_ERROR_INVALID_HANDLE;
  }
  auto r = std::make_shared<Recording>();
  r->context = a.context;
  r->channel = a.stream->channel;
  Op op = {};
  op.kind = OpKind::mark;
  Effect effect;
  effect.lazy = true;
  effect.run = [r](uint64_t end) { r->end_ns.store(end, std::memory_order_release); };
  if (const CUresult e = submit(*a.context, r->channel, op, std::move(effect), &r->sequence)) return e;
  const std::lock_guard lock(process().mutex);
  event->recording = std::move(r);
  return CUDA_SUCCESS;
}

// CUDA_SUCCESS when everything before the recording is done. An event of a context that is gone is done.
CUresult query_event(const Recording& r, bool wait) {
  const auto c = r.context.lock();
  if (!c || c->destroyed.load()) return CUDA_SUCCESS;
  const bool known_end = r.end_ns.load(std::memory_order_acquire) != 0;
  if (!wait) return known_end ? CUDA_SUCCESS : query(*c, r.channel, r.sequence);
  const CUresult e = known_end ? CUDA_SUCCESS : wait_for(*c, r.channel, r.sequence);
  if (e == CUDA_SUCCESS) release_unused(c->device);
  return e;
}

CUresult wait_event(CUstream handle, CUevent event, unsigned flags) {
  At a;
  if (const CUresult e = at(handle, &a)) return e;
  if (flags & ~1u) return CUDA_ERROR_INVALID_VALUE;
  CUresult e;
  std::shared_ptr<Recording> r;
  if (!known(event, &r, &e)) return e;  // Never recorded: nothing to wait for.
  const auto from = r->context.lock();
  if (!from || r->end_ns.load(std::memory_order_acquire)) return CUDA_SUCCESS;
  Step step;
  step.op.kind = OpKind::mark;
  note_wait(*a.context, a.stream->channel, *r);
  const Place recorded{from, r->channel, r->sequence};
  return submit_after(a.context, a.stream->channel, {&recorded, 1}, std::move(step), nullptr);
}

CUresult host_function(CUstream handle, std::function<void(uint64_t)> f) {
  At a;
  if (const CUresult e = at(handle, &a)) return e;
  Op op = {};
  op.kind = OpKind::host;
  Effect effect;
  effect.host = true;
  effect.run = std::move(f);
  return submit(*a.context, a.stream->channel, op, std::move(effect), nullptr);
}

CUresult launch_host(CUstream s, CUhostFn f, void* data) {
  if (!f) return CUDA_ERROR_INVALID_VALUE;
  return host_function(s, [f, data](uint64_t) { f(data); });
}

// The callback gets the handle that the program passed, not ours for it.
CUresult add_callback(CUstream s, CUstreamCallback f, void* data, unsigned flags, CUstream as_given) {
  if (!f || flags) return CUDA_ERROR_INVALID_VALUE;
  return host_function(s, [f, data, as_given](uint64_t) { f(as_given, CUDA_SUCCESS, data); });
}

template <class Out, class Get>
CUresult stream_property(CUstream handle, Out* out, Get get) {
  At a;
  if (const CUresult e = at(handle, &a)) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = get(*a.stream);
  return CUDA_SUCCESS;
}

}  // namespace

EXPORT CUresult cuStreamCreate(CUstream* out, unsigned int flags) { return create_stream(out, flags, 0); }
EXPORT CUresult cuStreamCreateWithPriority(CUstream* out, unsigned int flags, int priority) {
  return create_stream(out, flags, priority);
}

EXPORT CUresult cuStreamDestroy_v2(CUstream handle) {
  if (const CUresult e = entered()) return e;
  Process& p = process();
  const std::lock_guard lock(p.mutex);
  if (!p.streams.erase(handle)) return CUDA_ERROR_INVALID_HANDLE;
  if (const auto found = p.contexts.find(handle->context); found != p.contexts.end())
    give_channel(*found->second, handle->channel);
  delete handle;  // Work that it was given goes on in its channel.
  return CUDA_SUCCESS;
}
EXPORT CUresult cuStreamDestroy(CUstream handle) { return cuStreamDestroy_v2(handle); }

EXPORT CUresult cuStreamSynchronize(CUstream s) { return stream_synchronize(s); }
EXPORT CUresult cuStreamSynchronize_ptsz(CUstream s) { return stream_synchronize(per_thread(s)); }
EXPORT CUresult cuStreamQuery(CUstream s) { return stream_query(s); }
EXPORT CUresult cuStreamQuery_ptsz(CUstream s) { return stream_query(per_thread(s)); }
EXPORT CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned int flags) {
  return wait_event(s, e, flags);
}
EXPORT CUresult cuStreamWaitEvent_ptsz(CUstream s, CUevent e, unsigned int flags) {
  return wait_event(per_thread(s), e, flags);
}
EXPORT CUresult cuLaunchHostFunc(CUstream s, CUhostFn f, void* data) { return launch_host(s, f, data); }
EXPORT CUresult cuLaunchHostFunc_ptsz(CUstream s, CUhostFn f, void* data) {
  return launch_host(per_thread(s), f, data);
}
EXPORT CUresult cuStreamAddCallback(CUstream s, CUstreamCallback f, void* data, unsigned int flags) {
  return add_callback(s, f, data, flags, s);
}
EXPORT CUresult cuStreamAddCallback_ptsz(CUstream s, CUstreamCallback f, void* data, unsigned int flags) {
  return add_callback(per_thread(s), f, data, flags, s);
}

namespace {

// Of a stream's attributes the priority has an effect here; the others are policies for caches and memory
// domains.
CUresult get_attribute(CUstream handle, CUstreamAttrID which, CUstreamAttrValue* out) {
  At a;
  if (const CUresult e = at(handle, &a)) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = {};
  if (which == CU_LAUNCH_ATTRIBUTE_PRIORITY) out->priority = a.stream->priority;
  if (which == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY) out->syncPolicy = CU_SYNC_POLICY_AUTO;
  return CUDA_SUCCESS;
}
CUresult set_attribute(CUstream handle, CUstreamAttrID which, const CUstreamAttrValue* value) {
  At a;
  if (const CUresult e = at(handle, &a)) return e;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  if (which == CU_LAUNCH_ATTRIBUTE_PRIORITY)
    a.stream->priority = std::clamp(value->priority, kGreatestPriority, 0);
  return CUDA_SUCCESS;
}
CUresult copy_attributes(CUstream to, CUstream from) {
  CUstreamAttrValue priority;
  if (const CUresult e = get_attribute(from, CU_LAUNCH_ATTRIBUTE_PRIORITY, &priority)) return e;
  return set_attribute(to, CU_LAUNCH_ATTRIBUTE_PRIORITY, &priority);
}

}  // namespace

EXPORT CUresult cuStreamGetAttribute(CUstream s, CUstreamAttrID which, CUstreamAttrValue* out) {
  return get_attribute(s, which, out);
}
EXPORT CUresult cuStreamGetAttribute_ptsz(CUstream s, CUstreamAttrID which, CUstreamAttrValue* out) {
  return get_attribute(per_thread(s), which, out);
}
EXPORT CUresult cuStreamSetAttribute(CUstream s, CUstreamAttrID which, const CUstreamAttrValue* value) {
  return set_attribute(s, which, value);
}
EXPORT CUresult cuStreamSetAttribute_ptsz(CUstream s, CUstreamAttrID which, const CUstreamAttrValue* value) {
  return set_attribute(per_thread(s), which, value);
}
EXPORT CUresult cuStreamCopyAttributes(CUstream to, CUstream from) { return copy_attributes(to, from); }
EXPORT CUresult cuStreamCopyAttributes_ptsz(CUstream to, CUstream from) {
  return copy_attributes(per_thread(to), per_thread(from));
}

EXPORT CUresult cuStreamGetPriority(CUstream s, int* out) {
  return stream_property(s, out, [](const CUstream_st& x) { return x.priority; });
}
EXPORT CUresult cuStreamGetPriority_ptsz(CUstream s, int* out) {
  return cuStreamGetPriority(per_thread(s), out);
}
EXPORT CUresult cuStreamGetFlags(CUstream s, unsigned int* out) {
  return stream_property(s, out, [](const CUstream_st& x) { return x.flags; });
}
EXPORT CUresult cuStreamGetFlags_ptsz(CUstream s, unsigned int* out) {
  return cuStreamGetFlags(per_thread(s), out);
}
EXPORT CUresult cuStreamGetId(CUstream s, unsigned long long* out) {
  return stream_property(s, out, [](const CUstream_st& x) { return x.id; });
}
EXPORT CUresult cuStreamGetId_ptsz(CUstream s, unsigned long long* out) {
  return cuStreamGetId(per_thread(s), out);
}
EXPORT CUresult cuStreamGetDevice(CUstream s, CUdevice* out) {
  return stream_property(s, out, [](const CUstream_st& x) { return visible_of(x.context->device); });
}
EXPORT CUresult cuStreamGetDevice_ptsz(CUstream s, CUdevice* out) {
  return cuStreamGetDevice(per_thread(s), out);
}
EXPORT CUresult cuStreamGetCtx(CUstream s, CUcontext* out) {
  return stream_property(s, out, [](const CUstream_st& x) { return x.context; });
}
EXPORT CUresult cuStreamGetCtx_ptsz(CUstream s, CUcontext* out) { return cuStreamGetCtx(per_thread(s), out); }
EXPORT CUresult cuStreamGetCtx_v2(CUstream s, CUcontext* out, CUgreenCtx* green) {
  if (green) *green = nullptr;
  return cuStreamGetCtx(s, out);
}
EXPORT CUresult cuStreamGetCtx_v2_ptsz(CUstream s, CUcontext* out, CUgreenCtx* green) {
  return cuStreamGetCtx_v2(per_thread(s), out, green);
}

// No stream captures: graphs are not simulated yet.
EXPORT CUresult cuStreamIsCapturing(CUstream s, CUstreamCaptureStatus* out) {
  return stream_property(s, out, [](const CUstream_st&) { return CU_STREAM_CAPTURE_STATUS_NONE; });
}
EXPORT CUresult cuStreamIsCapturing_ptsz(CUstream s, CUstreamCaptureStatus* out) {
  return cuStreamIsCapturing(per_thread(s), out);
}

namespace {

CUresult no_capture(CUstream s, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                    const CUgraphNode** nodes, const CUgraphEdgeData** edges, size_t* count) {
  if (!status) return CUDA_ERROR_INVALID_VALUE;
  if (id) *id = 0;
  if (graph) *graph = nullptr;
  if (nodes) *nodes = nullptr;
  if (edges) *edges = nullptr;
  if (count) *count = 0;
  return cuStreamIsCapturing(s, status);
}

}  // namespace

EXPORT CUresult cuStreamGetCaptureInfo(CUstream s, CUstreamCaptureStatus* status, cuuint64_t* id) {
  return no_capture(s, status, id, nullptr, nullptr, nullptr, nullptr);
}
EXPORT CUresult cuStreamGetCaptureInfo_ptsz(CUstream s, CUstreamCaptureStatus* status, cuuint64_t* id) {
  return no_capture(per_thread(s), status, id, nullptr, nullptr, nullptr, nullptr);
}
EXPORT CUresult cuStreamGetCaptureInfo_v2(CUstream s, CUstreamCaptureStatus* status, cuuint64_t* id,
                                          CUgraph* graph, const CUgraphNode** nodes, size_t* count) {
  return no_capture(s, status, id, graph, nodes, nullptr, count);
}
EXPORT CUresult cuStreamGetCaptureInfo_v2_ptsz(CUstream s, CUstreamCaptureStatus* status, cuuint64_t* id,
                                               CUgraph* graph, const CUgraphNode** nodes, size_t* count) {
  return no_capture(per_thread(s), status, id, graph, nodes, nullptr, count);
}
EXPORT CUresult cuStreamGetCaptureInfo_v3(CUstream s, CUstreamCaptureStatus* status, cuuint64_t* id,
                                          CUgraph* graph, const CUgraphNode** nodes,
                                          const CUgraphEdgeData** edges, size_t* count) {
  return no_capture(s, status, id, graph, nodes, edges, count);
}
EXPORT CUresult cuStreamGetCaptureInfo_v3_ptsz(CUstream s, CUstreamCaptureStatus* status, cuuint64_t* id,
                                               CUgraph* graph, const CUgraphNode** nodes,
                                               const CUgraphEdgeData** edges, size_t* count) {
  return no_capture(per_thread(s), status, id, graph, nodes, edges, count);
}

// The mode that a thread would capture in; kept, since programs save and restore it around calls that never
// capture.
EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  if (const CUresult e = entered()) return e;
  if (!mode || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  static thread_local CUstreamCaptureMode own = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::swap(own, *mode);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventCreate(CUevent* out, unsigned int flags) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  if (!out || flags > 7) return CUDA_ERROR_INVALID_VALUE;
  if (flags & CU_EVENT_INTERPROCESS) return CUDA_ERROR_NOT_SUPPORTED;
  auto* event = new CUevent_st{flags, c.get(), nullptr};
  const std::lock_guard lock(process().mutex);
  process().events.insert(event);
  *out = event;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuEventDestroy_v2(CUevent event) {
  if (const CUresult e = entered()) return e;
  const std::lock_guard lock(process().mutex);
  if (!process().events.erase(event)) return CUDA_ERROR_INVALID_HANDLE;
  delete event;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuEventDestroy(CUevent event) { return cuEventDestroy_v2(event); }

EXPORT CUresult cuEventRecord(CUevent event, CUstream s) { return record(event, s); }
EXPORT CUresult cuEventRecord_ptsz(CUevent event, CUstream s) { return record(event, per_thread(s)); }
EXPORT CUresult cuEventRecordWithFlags(CUevent event, CUstream s, unsigned int flags) {
  return flags & ~1u ? CUDA_ERROR_INVALID_VALUE : record(event, s);
}
EXPORT CUresult cuEventRecordWithFlags_ptsz(CUevent event, CUstream s, unsigned int flags) {
  return cuEventRecordWithFlags(event, per_thread(s), flags);
}

EXPORT CUresult cuEventQuery(CUevent event) {
  CUresult e;
  std::shared_ptr<Recording> r;
  return known(event, &r, &e) ? query_event(*r, false) : e;
}
EXPORT CUresult cuEventSynchronize(CUevent event) {
  CUresult e;
  std::shared_ptr<Recording> r;
  return known(event, &r, &e) ? query_event(*r, true) : e;
}

EXPORT CUresult cuEventElapsedTime(float* ms, CUevent start, CUevent end) {
  CUresult e;
  std::shared_ptr<Recording> a, b;
  const bool have_a = known(start, &a, &e);
  if (e) return e;
  const bool have_b = known(end, &b, &e);
  if (e) return e;
  if (!ms) return CUDA_ERROR_INVALID_VALUE;
  if (!have_a || !have_b) return CUDA_ERROR_INVALID_HANDLE;
  if ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) return CUDA_ERROR_INVALID_HANDLE;
  for (const auto& r : {a, b})
    if (const CUresult not_yet = query_event(*r, false)) return not_yet;
  *ms = static_cast<float>((static_cast<double>(b->end_ns.load()) - static_cast<double>(a->end_ns.load())) /
                           1e6);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuEventElapsedTime_v2(float* ms, CUevent start, CUevent end) {
  return cuEventElapsedTime(ms, start, end);
}
