// See capture.h. The state of a capture: its graph, and for each stream in it the nodes that the stream's
// next one will follow.
#include "sim/libcuda/capture.h"

#include <algorithm>

#include "sim/libcuda/graph_calls.h"
#include "sim/libcuda/graph_order.h"

using namespace carve::sim;

namespace carve::sim {

struct Tail {
  std::vector<Edge> follows;
  std::vector<CUgraphNode> shown;  // What cuStreamGetCaptureInfo pointed at.
  std::vector<CUgraphEdgeData> shown_data;
};

struct Capture {
  uint64_t id = 0;
  CUgraph_st* graph = nullptr;
  CUstream_st* origin = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  const void* thread = nullptr;
  bool invalid = false;
  std::map<CUstream_st*, Tail> tails;
};

// Where in a capture an event was recorded.
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
thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
// An address that is this thread's alone.
const void* this_thread() { return &thread_mode; }

void set_capture(CUstream_st& s, Capture* c) { __atomic_store_n(&s.capture, c, __ATOMIC_RELEASE); }

void end(Capture& c) {
  for (auto& [stream, tail] : c.tails) set_capture(*stream, nullptr);
  captures().erase(&c);
  active.fetch_sub(1);
}

CUresult spoil(Capture& c, CUresult why) {
  c.invalid = true;
  return why;
}

bool alive(const Capture& c) { return !c.invalid && is_graph(c.graph); }

// Nodes that the program destroyed are followed no more.
void prune(Tail& t) {
  std::erase_if(t.follows, [](const Edge& e) { return !is_node(e.node); });
}

void add_follows(Tail& to, const std::vector<Edge>& more) {
  for (const Edge& e : more)
    if (std::ranges::none_of(to.follows, [&](const Edge& x) { return x.node == e.node; }))
      to.follows.push_back(e);
}

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

// What a stream shows of its capture, with the lock held.
Capture* of(const CUstream_st& s) { return s.capture; }

}  // namespace

CUresult capture(CUstream_st& s, const std::shared_ptr<CUctx_st>& context, Payload payload) {
  const GraphLock lock;
  Capture* c = of(s);
  if (!c || !alive(*c)) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  CUgraphNode_st* node = nullptr;
  return append(*c, s, context, std::move(payload), &node);
}

CUresult capture(CUstream_st& s, CUgraphNodeParams* params) {
  const GraphLock lock;
  Capture* c = of(s);
  if (!c || !alive(*c)) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  Payload payload;
  std::shared_ptr<CUctx_st> context;
  if (const CUresult e = payload_of(*params, &payload, &context)) return spoil(*c, e);
  CUgraphNode_st* node = nullptr;
  if (const CUresult e = append(*c, s, context, std::move(payload), &node)) return e;
  params_of(*node, params);
  return CUDA_SUCCESS;
}

CUresult refuse_wait(CUstream_st& s) {
  if (!capturing(s)) return CUDA_SUCCESS;
  const GraphLock lock;
  Capture* c = of(s);
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
  if (active.load(std::memory_order_acquire) == 0 || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_SUCCESS;
  const GraphLock lock;
  CUresult result = CUDA_SUCCESS;
  for (const auto& [c, keep] : captures()) {
    const bool own = c->thread == this_thread() && c->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    const bool others = c->thread != this_thread() && c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                        thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
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
  Capture* c = of(s);
  if (!c || !alive(*c)) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  prune(c->tails[&s]);
  auto captured = std::make_shared<CapturedEvent>();
  captured->capture = captures()[c];
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
  Capture* own = of(s);
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
  Capture* c = of(s);
  if (!c) return;
  if (c->origin == &s) return end(*c);
  c->invalid = true;
  c->tails.erase(&s);
}

}  // namespace carve::sim

namespace {

CUresult begin(CUstream handle, CUgraph graph, const CUgraphNode* dependencies, const CUgraphEdgeData* data,
               size_t count, CUstreamCaptureMode mode) {
  std::shared_ptr<CUctx_st> c;
  CUstream_st* s = nullptr;
  if (const CUresult e = stream_of(handle, &c, &s)) return e;
  if (mode > CU_STREAM_CAPTURE_MODE_RELAXED || (count && !dependencies)) return CUDA_ERROR_INVALID_VALUE;
  if (s == &c->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  const GraphLock lock;
  if (capturing(*s)) return CUDA_ERROR_ILLEGAL_STATE;
  if (graph && !is_graph(graph)) return CUDA_ERROR_INVALID_VALUE;
  auto fresh = std::make_shared<Capture>();
  Tail& tail = fresh->tails[s];
  for (size_t i = 0; i < count; ++i) {
    if (!is_node(dependencies[i]) || dependencies[i]->graph != graph) return CUDA_ERROR_INVALID_VALUE;
    tail.follows.push_back({dependencies[i], data ? data[i] : CUgraphEdgeData{}});
  }
  fresh->id = process().next_id.fetch_add(1);
  fresh->graph = graph ? graph : new_graph();
  fresh->origin = s;
  fresh->mode = mode;
  fresh->thread = this_thread();
  captures()[fresh.get()] = fresh;
  active.fetch_add(1);
  set_capture(*s, fresh.get());
  return CUDA_SUCCESS;
}

// Whether everything that other streams captured comes before what the origin's next node would follow.
bool joined(const Capture& c) {
  std::map<const CUgraphNode_st*, unsigned> number;
  for (const auto& n : c.graph->nodes) number.emplace(n.get(), static_cast<unsigned>(number.size()));
  Waits waits(number.size());
  for (const auto& n : c.graph->nodes)
    for (const Edge& e : n->in) waits[number[n.get()]].push_back(number[e.node]);
  std::vector<unsigned> wanted, from;
  for (const auto& [stream, tail] : c.tails)
    for (const Edge& e : tail.follows)
      if (is_node(e.node) && number.contains(e.node))
        (stream == c.origin ? from : wanted).push_back(number[e.node]);
  return all_before(waits, wanted, from);
}

CUresult finish(CUstream handle, CUgraph* out) {
  std::shared_ptr<CUctx_st> context;
  CUstream_st* s = nullptr;
  if (const CUresult e = stream_of(handle, &context, &s)) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  const GraphLock lock;
  Capture* c = of(*s);
  if (!c) return CUDA_ERROR_ILLEGAL_STATE;
  const auto keep = captures()[c];
  if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && c->thread != this_thread())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  if (c->origin != s) return spoil(*c, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  CUresult result = CUDA_SUCCESS;
  if (!alive(*c))
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  else if (!joined(*c))
    result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  end(*c);
  *out = result ? nullptr : c->graph;
  if (result) destroy_graph(c->graph);
  return result;
}

CUresult status(CUstream handle, CUstreamCaptureStatus* out) {
  std::shared_ptr<CUctx_st> context;
  CUstream_st* s = nullptr;
  if (const CUresult e = stream_of(handle, &context, &s, true)) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = CU_STREAM_CAPTURE_STATUS_NONE;
  if (!capturing(*s)) return CUDA_SUCCESS;
  const GraphLock lock;
  if (const Capture* c = of(*s))
    *out = alive(*c) ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  return CUDA_SUCCESS;
}

struct Info {
  cuuint64_t* id = nullptr;
  CUgraph* graph = nullptr;
  const CUgraphNode** nodes = nullptr;
  const CUgraphEdgeData** data = nullptr;
  size_t* count = nullptr;
};

CUresult info(CUstream handle, CUstreamCaptureStatus* out, const Info& i) {
  if (const CUresult e = status(handle, out)) return e;
  if (i.id) *i.id = 0;
  if (i.graph) *i.graph = nullptr;
  if (i.nodes) *i.nodes = nullptr;
  if (i.data) *i.data = nullptr;
  if (i.count) *i.count = 0;
  if (*out != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  std::shared_ptr<CUctx_st> context;
  CUstream_st* s = nullptr;
  if (const CUresult e = stream_of(handle, &context, &s, true)) return e;
  const GraphLock lock;
  Capture* c = of(*s);
  if (!c) return CUDA_SUCCESS;
  Tail& tail = c->tails[s];
  prune(tail);
  tail.shown.clear();
  tail.shown_data.clear();
  for (const Edge& e : tail.follows) {
    if (i.nodes && !i.data && (e.data.from_port || e.data.to_port || e.data.type))
      return CUDA_ERROR_LOSSY_QUERY;
    tail.shown.push_back(e.node);
    tail.shown_data.push_back(e.data);
  }
  if (i.id) *i.id = c->id;
  if (i.graph) *i.graph = c->graph;
  if (i.nodes) *i.nodes = tail.shown.data();
  if (i.data) *i.data = tail.shown_data.data();
  if (i.count) *i.count = tail.shown.size();
  return CUDA_SUCCESS;
}

CUresult update(CUstream handle, const CUgraphNode* nodes, const CUgraphEdgeData* data, size_t count,
                unsigned flags) {
  std::shared_ptr<CUctx_st> context;
  CUstream_st* s = nullptr;
  if (const CUresult e = stream_of(handle, &context, &s)) return e;
  constexpr unsigned kSet = 1;  // Instead of those that were there; 0 adds.
  if (flags > kSet || (count && !nodes)) return CUDA_ERROR_INVALID_VALUE;
  const GraphLock lock;
  Capture* c = of(*s);
  if (!c || !alive(*c)) return CUDA_ERROR_ILLEGAL_STATE;
  std::vector<Edge> wanted;
  for (size_t i = 0; i < count; ++i) {
    if (!is_node(nodes[i]) || nodes[i]->graph != c->graph) return CUDA_ERROR_INVALID_VALUE;
    wanted.push_back({nodes[i], data ? data[i] : CUgraphEdgeData{}});
  }
  Tail& tail = c->tails[s];
  if (flags == kSet) tail.follows.clear();
  add_follows(tail, wanted);
  return CUDA_SUCCESS;
}

}  // namespace

EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  if (const CUresult e = entered()) return e;
  if (!mode || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  std::swap(thread_mode, *mode);
  return CUDA_SUCCESS;
}

// Each with its twin for the thread's own default stream. Version 1 of the first captured in global mode.
#define TWINS(name, Parameters, arguments_of, arguments_own) \
  EXPORT CUresult name Parameters { return arguments_of; }   \
  EXPORT CUresult name##_ptsz Parameters { return arguments_own; }
TWINS(cuStreamBeginCapture, (CUstream s),
      begin(s, nullptr, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_GLOBAL),
      begin(per_thread(s), nullptr, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_GLOBAL))
TWINS(cuStreamBeginCapture_v2, (CUstream s, CUstreamCaptureMode mode),
      begin(s, nullptr, nullptr, nullptr, 0, mode), begin(per_thread(s), nullptr, nullptr, nullptr, 0, mode))
TWINS(cuStreamBeginCaptureToGraph,
      (CUstream s, CUgraph g, const CUgraphNode* nodes, const CUgraphEdgeData* data, size_t n,
       CUstreamCaptureMode mode),
      g ? begin(s, g, nodes, data, n, mode) : CUDA_ERROR_INVALID_VALUE,
      g ? begin(per_thread(s), g, nodes, data, n, mode) : CUDA_ERROR_INVALID_VALUE)
TWINS(cuStreamEndCapture, (CUstream s, CUgraph* out), finish(s, out), finish(per_thread(s), out))
TWINS(cuStreamIsCapturing, (CUstream s, CUstreamCaptureStatus* out), status(s, out),
      status(per_thread(s), out))
TWINS(cuStreamGetCaptureInfo, (CUstream s, CUstreamCaptureStatus* out, cuuint64_t* id), info(s, out, {id}),
      info(per_thread(s), out, {id}))
TWINS(cuStreamGetCaptureInfo_v2,
      (CUstream s, CUstreamCaptureStatus* out, cuuint64_t* id, CUgraph* g, const CUgraphNode** nodes,
       size_t* n),
      info(s, out, {id, g, nodes, nullptr, n}), info(per_thread(s), out, {id, g, nodes, nullptr, n}))
TWINS(cuStreamGetCaptureInfo_v3,
      (CUstream s, CUstreamCaptureStatus* out, cuuint64_t* id, CUgraph* g, const CUgraphNode** nodes,
       const CUgraphEdgeData** data, size_t* n),
      info(s, out, {id, g, nodes, data, n}), info(per_thread(s), out, {id, g, nodes, data, n}))
TWINS(cuStreamUpdateCaptureDependencies, (CUstream s, CUgraphNode* nodes, size_t n, unsigned int flags),
      update(s, nodes, nullptr, n, flags), update(per_thread(s), nodes, nullptr, n, flags))
TWINS(cuStreamUpdateCaptureDependencies_v2,
      (CUstream s, CUgraphNode* nodes, const CUgraphEdgeData* data, size_t n, unsigned int flags),
      update(s, nodes, data, n, flags), update(per_thread(s), nodes, data, n, flags))
#undef TWINS
