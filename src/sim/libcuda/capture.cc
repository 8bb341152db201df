// The effects of calls on running captures. The rules are in capture.h.
#include "sim/libcuda/capture.h"

#include <algorithm>

#include "sim/libcuda/capture_state.h"
#include "sim/libcuda/graph_calls.h"

using namespace carve::sim;

namespace carve::sim {

// The position in a capture at which an event was recorded.
struct CapturedEvent {
  std::weak_ptr<Capture> capture;
  std::vector<Edge> follows;
};

namespace {

std::atomic<unsigned> active{0};
std::map<Capture*, std::shared_ptr<Capture>>& captures() {
  static auto* all = new std::map<Capture*, std::shared_ptr<Capture>>;
  return *all;
}

void set_capture(CUstream_st& s, Capture* c) { __atomic_store_n(&s.capture, c, __ATOMIC_RELEASE); }

CUresult append(Capture& c, CUstream_st& s, const std::shared_ptr<CUctx_st>& context, Payload payload,
                CUgraphNode_st** out) {
  Tail& tail = c.tails[&s];
  prune(tail);
  std::vector<CUgraphNode> nodes;
  std::vector<CUgraphEdgeData> data;
  for (const Edge& e : tail.follows) nodes.push_back(e.node), data.push_back(e.data);
  if (const CUresult e =
          add_node(*c.graph, nodes.data(), data.data(), nodes.size(), context, std::move(payload), out))
    return spoil(c, e);
  tail.follows = {{*out, {}}};
  return CUDA_SUCCESS;
}

}  // namespace

CUstreamCaptureMode& thread_mode() {
  thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

void begin_capture(const std::shared_ptr<Capture>& c) {
  for (auto& [stream, tail] : c->tails) set_capture(*stream, c.get());
  captures()[c.get()] = c;
  active.fetch_add(1);
}

std::shared_ptr<Capture> keep_capture(Capture& c) { return captures()[&c]; }

void end_capture(Capture& c) {
  for (auto& [stream, tail] : c.tails) set_capture(*stream, nullptr);
  active.fetch_sub(1);
  captures().erase(&c);
}

CUresult spoil(Capture& c, CUresult why) {
  c.invalid = true;
  return why;
}

bool alive(const Capture& c) { return !c.invalid && is_graph(c.graph); }

void prune(Tail& t) {
  std::erase_if(t.follows, [](const Edge& e) { return !is_node(e.node); });
}

void add_follows(Tail& to, const std::vector<Edge>& more) {
  for (const Edge& e : more)
    if (std::ranges::none_of(to.follows, [&](const Edge& x) { return x.node == e.node; }))
      to.follows.push_back(e);
}

CUresult capture(CUstream_st& s, const std::shared_ptr<CUctx_st>& context, Payload payload) {
  const GraphLock lock;
  Capture* c = capture_of(s);
  if (!c || !alive(*c)) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  CUgraphNode_st* node = nullptr;
  return append(*c, s, context, std::move(payload), &node);
}

CUresult capture(CUstream_st& s, const std::shared_ptr<CUctx_st>& context, CUgraphNodeParams* params) {
  const GraphLock lock;
  Capture* c = capture_of(s);
  if (!c || !alive(*c)) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  Payload payload;
  std::shared_ptr<CUctx_st> of_parameters;
  if (const CUresult e = payload_of(*params, &payload, &of_parameters)) return spoil(*c, e);
  if (const CUresult e = memory_fits(*c->graph, payload)) return spoil(*c, e);
  CUgraphNode_st* node = nullptr;
  if (const CUresult e = append(*c, s, context, std::move(payload), &node)) return e;
  params_of(*node, params);
  return CUDA_SUCCESS;
}

CUresult refuse_wait(CUstream_st& s) {
  if (!capturing(s)) return CUDA_SUCCESS;
  const GraphLock lock;
  Capture* c = capture_of(s);
  return c ? spoil(*c, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) : CUDA_SUCCESS;
}

CUresult refuse_wait(CUctx_st& context) {
  if (active.load(std::memory_order_acquire) == 0) return CUDA_SUCCESS;
  const GraphLock lock;
  CUresult result = CUDA_SUCCESS;
  for (const auto& [c, keep] : captures())
    for (const auto& [stream, tail] : c->tails)
      if (stream->context == &context) result = spoil(*c, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  return result;
}

CUresult refuse_unsafe_call() {
  if (active.load(std::memory_order_acquire) == 0 || thread_mode() == CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_SUCCESS;
  const GraphLock lock;
  CUresult result = CUDA_SUCCESS;
  for (const auto& [c, keep] : captures()) {
    const bool own = c->thread == this_thread() && c->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    const bool others = c->thread != this_thread() && c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                        thread_mode() == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (own || others) result = spoil(*c, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  return result;
}

CUresult refuse_implicit(CUctx_st& context, bool only_asks) {
  if (active.load(std::memory_order_acquire) == 0) return CUDA_SUCCESS;
  const GraphLock lock;
  CUresult result = CUDA_SUCCESS;
  for (const auto& [c, keep] : captures())
    for (const auto& [stream, tail] : c->tails)
      if (stream->context == &context && !(stream->flags & CU_STREAM_NON_BLOCKING)) {
        result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        if (!only_asks) spoil(*c, result);
      }
  return result;
}

CUresult capture_record(CUstream_st& s, const std::shared_ptr<CUctx_st>& context, CUevent event,
                        bool external) {
  if (external) return capture(s, context, EventRecordNode{event});
  const GraphLock lock;
  Capture* c = capture_of(s);
  if (!c || !alive(*c)) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  prune(c->tails[&s]);
  auto captured = std::make_shared<CapturedEvent>();
  captured->capture = keep_capture(*c);
  captured->follows = c->tails[&s].follows;
  const std::lock_guard process_lock(process().mutex);
  event->captured = std::move(captured);
  return CUDA_SUCCESS;
}

bool concerns_capture(const CUstream_st& s, CUevent event) {
  if (capturing(s)) return true;
  const std::lock_guard lock(process().mutex);
  return event->captured != nullptr;
}

CUresult capture_wait(CUstream_st& s, const std::shared_ptr<CUctx_st>& context, CUevent event,
                      bool external) {
  if (external) return capturing(s) ? capture(s, context, EventWaitNode{event}) : CUDA_ERROR_INVALID_VALUE;
  const GraphLock lock;
  Capture* own = capture_of(s);
  std::shared_ptr<CapturedEvent> recorded;
  bool uncaptured = false;
  {
    const std::lock_guard process_lock(process().mutex);
    recorded = event->captured;
    uncaptured = event->recording != nullptr;
  }
  if (own && !alive(*own)) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!recorded) {
    if (!uncaptured) return CUDA_SUCCESS;
    return own ? spoil(*own, CUDA_ERROR_STREAM_CAPTURE_ISOLATION) : CUDA_SUCCESS;
  }
  const auto theirs = recorded->capture.lock();
  if (!theirs || !captures().contains(theirs.get())) {
    if (own) own->invalid = true;
    return CUDA_ERROR_CAPTURED_EVENT;
  }
  if (!alive(*theirs)) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (own && own != theirs.get()) {
    own->invalid = true;
    return spoil(*theirs, CUDA_ERROR_STREAM_CAPTURE_MERGE);
  }
  if (&s == &context->legacy) return spoil(*theirs, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  add_follows(theirs->tails[&s], recorded->follows);
  set_capture(s, theirs.get());
  return CUDA_SUCCESS;
}

void forget_in_capture(CUstream_st& s) {
  if (!capturing(s)) return;
  const GraphLock lock;
  Capture* c = capture_of(s);
  if (!c) return;
  if (c->origin == &s) return end_capture(*c);
  c->invalid = true;
  c->tails.erase(&s);
}

}  // namespace carve::sim
