// Launches graphs. A launch consists of a mark in the stream at its beginning, every node after the nodes
// that it waits for, and a mark at its end. The nodes are spread over the stream's own channel and other
// channels of the context, which all its graphs share. A launch of n nodes in a chain is n + 2 operations.
// The same executable's next launch waits for the end of this one, in any stream.
#include <algorithm>

#include "sim/libcuda/capture.h"
#include "sim/libcuda/graph_exec.h"

using namespace carve::sim;

namespace {

// Returns the channels that graphs use in addition to those of the streams. They are created on first use and
// then kept.
std::vector<unsigned> shared_channels(CUctx_st& c, unsigned wanted) {
  const std::lock_guard lock(process().mutex);
  while (c.graph_channels.size() < std::min(wanted, max_lanes))
    c.graph_channels.push_back(take_channel(c, false));
  return c.graph_channels;
}

// The channels of one launch, with one for each lane in each context. The emptiest channels come first, so
// that simultaneous graphs run in parallel.
class Channels {
 public:
  Channels(const CUctx_st& home, const CUstream_st& s) : home_(home), own_(s.channel), green_(s.green) {}

  unsigned of(CUctx_st& c, unsigned lane, unsigned lanes) {
    // The other channels of a green context belong to its streams, so its graphs use only the stream's own
    // channel.
    if (&c == &home_ && (lane == 0 || green_)) return own_;
    std::vector<unsigned>& free = free_[&c];
    if (free.empty()) {
      free = shared_channels(c, lanes);
      const auto backlog = [&](unsigned k) {
        const Channel& channel = c.model().channels[k];
        return __atomic_load_n(&channel.submitted, __ATOMIC_RELAXED) -
               __atomic_load_n(&channel.completed, __ATOMIC_RELAXED);
      };
      std::vector<std::pair<uint64_t, unsigned>> sorted;
      for (unsigned k : free) sorted.emplace_back(backlog(k), k);
      std::sort(sorted.begin(), sorted.end());
      for (size_t i = 0; i < free.size(); ++i) free[i] = sorted[i].second;
    }
    return free[lane % free.size()];
  }

 private:
  const CUctx_st& home_;
  unsigned own_;
  bool green_;
  std::map<CUctx_st*, std::vector<unsigned>> free_;
};

Step mark() {
  Step s;
  s.op.kind = OpKind::mark;
  return s;
}

int priority_of(const CUgraphExec_st& x, const ExecNode& entry, const CUstream_st& stream) {
  const auto* k = std::get_if<KernelNode>(&entry.node->payload);
  if (!k || !(x.flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)) return stream.priority;
  const auto found = k->attributes.find(CU_LAUNCH_ATTRIBUTE_PRIORITY);
  return found == k->attributes.end() ? 0 : std::clamp(found->second.priority, -5, 0);
}

// Submits one node after `places`. *end is the operation at which the node is done.
CUresult submit_node(const ExecNode& entry, const std::shared_ptr<CUctx_st>& c, unsigned channel,
                     std::vector<Place> places, int priority, Place* end) {
  if (const auto* record = std::get_if<EventRecordNode>(&entry.node->payload))
    return submit_record(record->event, c, channel, places, end);
  if (const auto* wait = std::get_if<EventWaitNode>(&entry.node->payload)) {
    Place recorded;
    if (const CUresult e = recorded_place(wait->event, &recorded)) return e;
    if (recorded.context) places.push_back(recorded);
  }
  if (entry.steps.empty() || !entry.enabled) return submit_after(c, channel, places, mark(), end);
  for (const Step& step : entry.steps) {
    Step s = step;
    s.op.priority = static_cast<int16_t>(priority);
    if (const CUresult e = submit_after(c, channel, places, std::move(s), end)) return e;
    places.clear();  // The next step of the node follows in the same channel.
  }
  return CUDA_SUCCESS;
}

// Submits a graph. Requires the executable's mutex, and the graph's memory must have been taken. *done
// receives the end of each node.
CUresult submit_graph(const std::shared_ptr<CUgraphExec_st>& keep, const std::shared_ptr<CUctx_st>& home,
                      CUstream_st& stream, std::vector<Place>* done) {
  CUgraphExec_st& x = *keep;
  std::vector<Place> before;
  if (x.last.context && !x.last.context->destroyed.load()) before.push_back(x.last);
  Place start;
  if (const CUresult e = submit_after(home, stream.channel, before, mark(), &start)) return e;
  Channels channels(*home, stream);
  const unsigned lanes = x.lanes.empty() ? 0 : *std::max_element(x.lanes.begin(), x.lanes.end()) + 1;
  for (size_t i = 0; i < x.nodes.size(); ++i) {
    const ExecNode& entry = x.nodes[i];
    const auto c = entry.node->context.lock();
    if (!c || c->destroyed.load()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    std::vector<Place> places;
    if (x.waits[i].empty()) places.push_back(start);
    for (unsigned w : x.waits[i]) places.push_back((*done)[w]);
    if (const CUresult e = submit_node(entry, c, channels.of(*c, x.lanes[i], lanes), std::move(places),
                                       priority_of(x, entry, stream), &(*done)[i]))
      return e;
  }
  std::vector<Place> ends;
  for (unsigned i : x.ends) ends.push_back((*done)[i]);
  if (const CUresult e = submit_after(home, stream.channel, ends, mark(), &x.last)) return e;
  if (!x.holds_objects) return CUDA_SUCCESS;
  // The user objects are kept until the launch has ended, even if the executable is destroyed earlier.
  Step release;
  release.op.kind = OpKind::host;
  release.effect.host = true;
  release.effect.run = [held = std::make_shared<std::shared_ptr<CUgraphExec_st>>(keep)](uint64_t) {
    held->reset();
  };
  return submit_after(home, stream.channel, {}, std::move(release), nullptr);
}

CUresult launch_in(const std::shared_ptr<CUgraphExec_st>& x, const std::shared_ptr<CUctx_st>& c,
                   CUstream_st& stream) {
  std::vector<Place> done(x->nodes.size());
  if (x->needs.none()) return submit_graph(x, c, stream, &done);
  const bool frees_before = x->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
  if (const CUresult e = graph_memory_take(x.get(), x->needs, *c, stream.channel, true, frees_before))
    return e;
  const CUresult e = submit_graph(x, c, stream, &done);
  graph_memory_submitted(x->needs, *c, stream.channel, done, x->last);
  return e;
}

CUresult launch(CUgraphExec handle, CUstream stream_handle) {
  std::shared_ptr<CUctx_st> c;
  CUstream_st* stream = nullptr;
  if (const CUresult e = stream_of(stream_handle, &c, &stream)) return e;
  const auto x = find_executable(handle);
  if (!x) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(x->mutex);
  if (capturing(*stream)) {
    if (!x->needs.none()) return refuse_wait(*stream);  // Memory nodes cannot become nodes of a child graph.
    ChildNode child;
    {
      const GraphLock graph_lock;
      child.graph = clone_graph(*x->image, true);
    }
    return capture(*stream, c, std::move(child));
  }
  return launch_in(x, c, *stream);
}

}  // namespace

namespace carve::sim {

CUresult upload(const std::shared_ptr<CUgraphExec_st>& x, CUstream stream_handle) {
  std::shared_ptr<CUctx_st> c;
  CUstream_st* stream = nullptr;
  if (const CUresult e = stream_of(stream_handle, &c, &stream)) return e;
  if (!x) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult e = refuse_wait(*stream)) return e;
  const std::lock_guard lock(x->mutex);
  return graph_memory_take(x.get(), x->needs, *c, stream->channel, false, false);
}

}  // namespace carve::sim

EXPORT CUresult cuGraphLaunch(CUgraphExec x, CUstream s) { return launch(x, s); }
EXPORT CUresult cuGraphLaunch_ptsz(CUgraphExec x, CUstream s) { return launch(x, per_thread(s)); }
EXPORT CUresult cuGraphUpload(CUgraphExec x, CUstream s) {
  const CUresult e = entered();
  return e ? e : upload(find_executable(x), s);
}
EXPORT CUresult cuGraphUpload_ptsz(CUgraphExec x, CUstream s) { return cuGraphUpload(x, per_thread(s)); }
