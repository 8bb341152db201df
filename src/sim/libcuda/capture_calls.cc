// The calls that begin, end and describe captures.
#include "sim/libcuda/capture_state.h"
#include "sim/libcuda/graph_calls.h"
#include "sim/libcuda/graph_order.h"

using namespace carve::sim;

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
  begin_capture(fresh);
  return CUDA_SUCCESS;
}

// Returns whether all work that other streams captured comes before the dependencies of the origin's next
// node.
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
  Capture* c = capture_of(*s);
  if (!c) return CUDA_ERROR_ILLEGAL_STATE;
  const auto keep = keep_capture(*c);
  if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && c->thread != this_thread())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  if (c->origin != s) return spoil(*c, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  CUresult result = CUDA_SUCCESS;
  if (!alive(*c))
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  else if (!joined(*c))
    result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  end_capture(*c);
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
  if (const Capture* c = capture_of(*s))
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
  Capture* c = capture_of(*s);
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
  constexpr unsigned set_flag = 1;  // Replaces the current dependencies; 0 adds to them.
  if (flags > set_flag || (count && !nodes)) return CUDA_ERROR_INVALID_VALUE;
  const GraphLock lock;
  Capture* c = capture_of(*s);
  if (!c || !alive(*c)) return CUDA_ERROR_ILLEGAL_STATE;
  std::vector<Edge> wanted;
  for (size_t i = 0; i < count; ++i) {
    if (!is_node(nodes[i]) || nodes[i]->graph != c->graph) return CUDA_ERROR_INVALID_VALUE;
    wanted.push_back({nodes[i], data ? data[i] : CUgraphEdgeData{}});
  }
  Tail& tail = c->tails[s];
  if (flags == set_flag) tail.follows.clear();
  add_follows(tail, wanted);
  return CUDA_SUCCESS;
}

}  // namespace

EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  if (const CUresult e = entered()) return e;
  if (!mode || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  std::swap(thread_mode(), *mode);
  return CUDA_SUCCESS;
}

// Each call with its variant for the thread's own default stream. Version 1 of the first call captured in
// global mode.
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
