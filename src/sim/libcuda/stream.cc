// Streams, events and host functions. A stream is a channel of the model. An event is a position in a
// channel, whose time the model determines. A wait for an event of the same device is a dependency; a wait
// for an event of another device is a gate that the service thread opens. Events of other processes are in
// ipc_event.h.
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "sim/libcuda/capture.h"
#include "sim/libcuda/green.h"
#include "sim/libcuda/ipc_event.h"
#include "sim/libcuda/step.h"
#include "sim/libcuda/stream_pool.h"

using namespace carve::sim;

namespace carve::sim {

CUresult known_event(CUevent event) {
  if (const CUresult e = entered()) return e;
  const std::lock_guard lock(process().mutex);
  return process().events.contains(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

namespace {

// Returns the part of the event that other processes see, or null if there is none.
std::shared_ptr<SharedEvent> shared_event(CUevent event) {
  const std::lock_guard lock(process().mutex);
  return process().events.contains(event) ? event->shared : nullptr;
}

// Returns whether the last recording was made by another process.
bool is_foreign(const SharedEvent* shared, const Recording* own) {
  return shared && (own ? own->number : 0) != shared->last();
}

// Creates a step that blocks its channel until the recording of another process is over.
Step foreign_gate(const std::shared_ptr<SharedEvent>& shared) {
  Step gate;
  gate.op.kind = OpKind::host;
  gate.effect.host = true;
  gate.effect.gate = [shared, number = shared->last()](uint64_t now) {
    return shared->over(number) ? 0 : now + 100'000;
  };
  return gate;
}

}  // namespace

CUresult submit_record(CUevent event, const std::shared_ptr<CUctx_st>& c, unsigned channel,
                       std::span<const Place> places, Place* out) {
  auto r = std::make_shared<Recording>();
  r->context = c;
  r->channel = channel;
  const auto shared = shared_event(event);
  std::shared_ptr<void> finish;
  if (shared) r->number = shared->begin(shared, &finish);
  Step step;
  step.op.kind = OpKind::mark;
  step.effect.lazy = !shared;
  step.effect.run = [r, finish = std::move(finish)](uint64_t end) mutable {
    r->end_ns.store(end, std::memory_order_release);
    finish.reset();
  };
  Place place;
  if (const CUresult e = submit_after(c, channel, places, std::move(step), &place)) return e;
  r->sequence = place.sequence;
  if (out) *out = place;
  const std::lock_guard lock(process().mutex);
  if (!process().events.contains(event)) return CUDA_ERROR_INVALID_HANDLE;
  event->recording = std::move(r);
  event->captured = nullptr;
  return CUDA_SUCCESS;
}

CUresult recorded_place(CUevent event, Place* out) {
  const std::lock_guard lock(process().mutex);
  if (!process().events.contains(event)) return CUDA_ERROR_INVALID_HANDLE;
  *out = {};
  const Recording* r = event->recording.get();
  // A graph's nodes wait only for the work of their own process.
  if (is_foreign(event->shared.get(), r)) return CUDA_ERROR_NOT_SUPPORTED;
  if (!r || r->end_ns.load(std::memory_order_acquire)) return CUDA_SUCCESS;
  *out = {r->context.lock(), r->channel, r->sequence};
  return CUDA_SUCCESS;
}

}  // namespace carve::sim

namespace {

constexpr int greatest_priority = -5;

CUresult create_stream(CUstream* out, const std::shared_ptr<CUctx_st>& c, CUgreenCtx green, unsigned flags,
                       int priority) {
  if (!out || (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING))) return CUDA_ERROR_INVALID_VALUE;
  Process& p = process();
  const std::lock_guard lock(p.mutex);
  const bool blocking = !(flags & CU_STREAM_NON_BLOCKING);
  auto* s = new CUstream_st{c.get(),
                            take_channel(*c, blocking, green ? green->part : Partition{}),
                            flags,
                            std::clamp(priority, greatest_priority, 0),
                            p.next_id.fetch_add(1),
                            nullptr,
                            green};
  p.streams.insert(s);
  *out = s;
  return CUDA_SUCCESS;
}

struct At {
  std::shared_ptr<CUctx_st> context;
  CUstream_st* stream = nullptr;
};
CUresult at(CUstream handle, At* out) { return stream_of(handle, &out->context, &out->stream); }
CUresult ask(CUstream handle, At* out) { return stream_of(handle, &out->context, &out->stream, true); }

CUresult stream_synchronize(CUstream handle) {
  At a;
  if (const CUresult e = at(handle, &a)) return e;
  if (const CUresult e = refuse_wait(*a.stream)) return e;
  const CUresult e = wait_channel(*a.context, a.stream->channel);
  if (e == CUDA_SUCCESS) release_unused(a.context->device);
  return e;
}

CUresult stream_query(CUstream handle) {
  At a;
  if (const CUresult e = at(handle, &a)) return e;
  if (const CUresult e = refuse_wait(*a.stream)) return e;
  return query_channel(*a.context, a.stream->channel);
}

// Returns the last recording, or nullptr with CUDA_SUCCESS if there is none. A captured recording returns its
// error.
Recording* known(CUevent event, std::shared_ptr<Recording>* keep, CUresult* e) {
  *e = entered();
  if (*e) return nullptr;
  const CUresult unknown = unknown_handle(event);
  const std::lock_guard lock(process().mutex);
  if (!process().events.contains(event)) *e = unknown;
  if (*e == CUDA_SUCCESS && event->captured) *e = CUDA_ERROR_CAPTURED_EVENT;
  if (*e) return nullptr;
  *keep = event->recording;
  return keep->get();
}

CUresult record(CUevent event, CUstream handle, unsigned flags) {
  At a;
  if (const CUresult e = at(handle, &a)) return e;
  if (flags & ~static_cast<unsigned>(CU_EVENT_RECORD_EXTERNAL)) return CUDA_ERROR_INVALID_VALUE;
  {
    const std::lock_guard lock(process().mutex);
    if (!process().events.contains(event) || event->context != a.context.get())
      return CUDA_ERROR_INVALID_HANDLE;
  }
  if (capturing(*a.stream)) return capture_record(*a.stream, a.context, event, flags != 0);
  if (flags) return CUDA_ERROR_INVALID_VALUE;  // Flags are valid only inside a capture.
  return submit_record(event, a.context, a.stream->channel, {}, nullptr);
}

// Returns CUDA_SUCCESS if everything before the recording is done. An event of a destroyed context counts as
// done.
CUresult query_event(const Recording& r, bool wait) {
  const auto c = r.context.lock();
  if (!c || c->destroyed.load()) return CUDA_SUCCESS;
  const bool known_end = r.end_ns.load(std::memory_order_acquire) != 0;
  if (!wait) return known_end ? CUDA_SUCCESS : query(*c, r.channel, r.sequence);
  const CUresult e = known_end ? CUDA_SUCCESS : wait_for(*c, r.channel, r.sequence);
  if (e == CUDA_SUCCESS) release_unused(c->device);
  return e;
}

CUresult query_any(CUevent event, bool wait) {
  CUresult e;
  std::shared_ptr<Recording> r;
  const bool recorded_here = known(event, &r, &e);
  if (e) return e;
  const auto shared = shared_event(event);
  if (!is_foreign(shared.get(), r.get())) return recorded_here ? query_event(*r, wait) : CUDA_SUCCESS;
  const uint64_t number = shared->last();
  for (useconds_t pause = 20; !shared->over(number); pause = std::min(pause * 2, 1000u)) {
    if (!wait) return CUDA_ERROR_NOT_READY;
    usleep(pause);
  }
  return CUDA_SUCCESS;
}

CUresult wait_event(CUstream handle, CUevent event, unsigned flags) {
  At a;
  if (const CUresult e = at(handle, &a)) return e;
  if (flags & ~1u) return CUDA_ERROR_INVALID_VALUE;
  if (known_event(event)) return CUDA_ERROR_INVALID_HANDLE;
  if (flags || concerns_capture(*a.stream, event))
    return capture_wait(*a.stream, a.context, event, flags != 0);
  CUresult e;
  std::shared_ptr<Recording> r;
  const bool recorded_here = known(event, &r, &e);
  if (e) return e;
  if (const auto shared = shared_event(event); is_foreign(shared.get(), r.get()))
    return submit_after(a.context, a.stream->channel, {}, foreign_gate(shared), nullptr);
  if (!recorded_here) return CUDA_SUCCESS;  // Never recorded, so there is nothing to wait for.
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
  At a;
  if (const CUresult e = at(s, &a)) return e;
  if (capturing(*a.stream)) return capture(*a.stream, a.context, HostNode{{f, data}});
  return host_function(s, [f, data](uint64_t) { f(data); });
}

// Adds a callback. The callback gets the handle that the program passed, not the internal one.
CUresult add_callback(CUstream s, CUstreamCallback f, void* data, unsigned flags, CUstream as_given) {
  if (!f || flags) return CUDA_ERROR_INVALID_VALUE;
  At a;
  if (const CUresult e = at(s, &a)) return e;
  if (const CUresult e = refuse_wait(*a.stream)) return e;
  return host_function(s, [f, data, as_given](uint64_t) { f(as_given, CUDA_SUCCESS, data); });
}

template <class Out, class Get>
CUresult stream_property(CUstream handle, Out* out, Get get) {
  At a;
  if (const CUresult e = ask(handle, &a)) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = get(*a.stream);
  return CUDA_SUCCESS;
}

}  // namespace

EXPORT CUresult cuStreamCreateWithPriority(CUstream* out, unsigned int flags, int priority) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  return create_stream(out, c, current_green(), flags, priority);
}
EXPORT CUresult cuStreamCreate(CUstream* out, unsigned int flags) {
  return cuStreamCreateWithPriority(out, flags, 0);
}
EXPORT CUresult cuGreenCtxStreamCreate(CUstream* out, CUgreenCtx green, unsigned int flags, int priority) {
  if (const CUresult e = entered()) return e;
  const auto c = primary_of(green);
  if (!c) return CUDA_ERROR_INVALID_CONTEXT;
  return flags & CU_STREAM_NON_BLOCKING ? create_stream(out, c, green, flags, priority)
                                        : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuStreamDestroy_v2(CUstream handle) {
  if (const CUresult e = entered()) return e;
  if (handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) return unknown_handle(handle);
  Process& p = process();
  {
    const std::lock_guard lock(p.mutex);
    if (!p.streams.contains(handle)) return CUDA_ERROR_INVALID_HANDLE;
  }
  forget_in_capture(*handle);
  const std::lock_guard lock(p.mutex);
  if (!p.streams.erase(handle)) return CUDA_ERROR_INVALID_HANDLE;
  if (const auto found = p.contexts.find(handle->context); found != p.contexts.end())
    give_channel(*found->second, handle->channel);
  delete handle;  // Its work continues in its channel.
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

// Only the priority of a stream's attributes has an effect; the others are policies for caches and memory
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
    a.stream->priority = std::clamp(value->priority, greatest_priority, 0);
  return CUDA_SUCCESS;
}
CUresult copy_attributes(CUstream to, CUstream from) {
  CUstreamAttrValue priority{};
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
EXPORT CUresult cuStreamGetGreenCtx(CUstream s, CUgreenCtx* out) {
  return stream_property(s, out, [](const CUstream_st& x) { return x.green; });
}
EXPORT CUresult cuStreamGetCtx_v2(CUstream s, CUcontext* out, CUgreenCtx* green) {
  const CUresult e = green ? cuStreamGetGreenCtx(s, green) : CUDA_SUCCESS;
  return e ? e : cuStreamGetCtx(s, out);
}
EXPORT CUresult cuStreamGetCtx_v2_ptsz(CUstream s, CUcontext* out, CUgreenCtx* green) {
  return cuStreamGetCtx_v2(per_thread(s), out, green);
}

EXPORT CUresult cuEventCreate(CUevent* out, unsigned int flags) {
  std::shared_ptr<CUctx_st> c;
  if (const CUresult e = current(&c)) return e;
  if (!out || flags > 7) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<SharedEvent> shared;
  if (flags & CU_EVENT_INTERPROCESS) {
    if (!(flags & CU_EVENT_DISABLE_TIMING)) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult e = SharedEvent::create(c->device, &shared)) return e;
  }
  auto* event = new CUevent_st{flags, c.get(), nullptr, nullptr, std::move(shared)};
  const std::lock_guard lock(process().mutex);
  process().events.insert(event);
  *out = event;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuEventDestroy_v2(CUevent event) {
  if (const CUresult e = entered()) return e;
  const CUresult unknown = unknown_handle(event);
  const std::lock_guard lock(process().mutex);
  if (!process().events.erase(event)) return unknown;
  delete event;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuEventDestroy(CUevent event) { return cuEventDestroy_v2(event); }

EXPORT CUresult cuEventRecord(CUevent event, CUstream s) { return record(event, s, 0); }
EXPORT CUresult cuEventRecord_ptsz(CUevent event, CUstream s) { return record(event, per_thread(s), 0); }
EXPORT CUresult cuEventRecordWithFlags(CUevent event, CUstream s, unsigned int flags) {
  return record(event, s, flags);
}
EXPORT CUresult cuEventRecordWithFlags_ptsz(CUevent event, CUstream s, unsigned int flags) {
  return cuEventRecordWithFlags(event, per_thread(s), flags);
}

EXPORT CUresult cuEventQuery(CUevent event) { return query_any(event, false); }
EXPORT CUresult cuEventSynchronize(CUevent event) { return query_any(event, true); }

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
