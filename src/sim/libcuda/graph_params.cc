// Translates a node's operation between the program's parameters and the graph. Reading copies everything
// that the program may free. Writing back is used by the Get calls. The steps are what is submitted to the
// model.
#include <algorithm>
#include <cstring>

#include "sim/libcuda/graph.h"
#include "sim/libcuda/graph_calls.h"
#include "sim/libcuda/launch.h"

namespace carve::sim {
namespace {

CUresult context_or_current(CUcontext wanted, std::shared_ptr<CUctx_st>* out) {
  if (!wanted) return current(out);
  *out = find_context(wanted);
  return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult child_payload(const CUDA_CHILD_GRAPH_NODE_PARAMS& p, ChildNode* out) {
  if (!is_graph(p.graph)) return CUDA_ERROR_INVALID_VALUE;
  const bool clone = p.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE;
  if (clone && has_memory(*p.graph)) return CUDA_ERROR_NOT_SUPPORTED;
  for (const auto& n : p.graph->nodes)
    if (clone && n->type() == CU_GRAPH_NODE_TYPE_CONDITIONAL) return CUDA_ERROR_NOT_SUPPORTED;
  if (p.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE) {
    out->graph = take_graph(p.graph);
    if (!out->graph) return CUDA_ERROR_INVALID_VALUE;
    out->graph->owned = true;
  } else {
    out->graph = clone_graph(*p.graph, true);
  }
  return CUDA_SUCCESS;
}

CUresult conditional_payload(const CUDA_CONDITIONAL_NODE_PARAMS& p, ConditionalNode* out) {
  const bool fits = p.type == CU_GRAPH_COND_TYPE_IF       ? p.size == 1 || p.size == 2
                    : p.type == CU_GRAPH_COND_TYPE_WHILE  ? p.size == 1
                    : p.type == CU_GRAPH_COND_TYPE_SWITCH ? p.size > 0 && p.size < 4096
                                                          : false;
  if (!fits) return CUDA_ERROR_INVALID_VALUE;
  out->handle = p.handle;
  out->type = p.type;
  for (unsigned i = 0; i < p.size; ++i) {
    out->bodies.push_back(std::make_shared<CUgraph_st>());
    out->bodies.back()->owned = true;
    out->handles.push_back(out->bodies.back().get());
  }
  return CUDA_SUCCESS;
}

template <class Node, class Params>
CUresult semaphore_payload(const Params& p, Payload* out) {
  if (!p.numExtSems || !p.extSemArray || !p.paramsArray) return CUDA_ERROR_INVALID_VALUE;
  Node node;
  node.semaphores.assign(p.extSemArray, p.extSemArray + p.numExtSems);
  node.values.assign(p.paramsArray, p.paramsArray + p.numExtSems);
  *out = std::move(node);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult kernel_payload(const CUDA_KERNEL_NODE_PARAMS& p, KernelNode* out) {
  const void* const function = p.func ? static_cast<const void*>(p.func) : p.kern;
  auto arguments = std::make_shared<Arguments>();
  if (const CUresult e = copy_arguments(function, p.kernelParams, p.extra, arguments.get())) return e;
  out->launch = p;
  out->launch.extra = nullptr;
  out->launch.kernelParams = arguments->pointers.data();
  out->arguments = std::move(arguments);
  return CUDA_SUCCESS;
}

CUresult payload_of(const CUgraphNodeParams& p, Payload* out, std::shared_ptr<CUctx_st>* context) {
  CUcontext wanted = nullptr;
  switch (p.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      KernelNode node;
      CUDA_KERNEL_NODE_PARAMS launch;  // The same members as those of the union.
      static_assert(sizeof launch == sizeof p.kernel);
      std::memcpy(&launch, &p.kernel, sizeof launch);
      if (const CUresult e = kernel_payload(launch, &node)) return e;
      *out = std::move(node);
      wanted = p.kernel.ctx;
      break;
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      *out = CopyNode{p.memcpy.copyParams};
      wanted = p.memcpy.copyCtx;
      break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
      *out = SetNode{{p.memset.dst, p.memset.pitch, p.memset.value, p.memset.elementSize, p.memset.width,
                      p.memset.height}};
      wanted = p.memset.ctx;
      break;
    case CU_GRAPH_NODE_TYPE_HOST:
      if (!p.host.fn) return CUDA_ERROR_INVALID_VALUE;
      *out = HostNode{{p.host.fn, p.host.userData}};
      break;
    case CU_GRAPH_NODE_TYPE_GRAPH: {
      ChildNode node;
      if (const CUresult e = child_payload(p.graph, &node)) return e;
      *out = std::move(node);
      break;
    }
    case CU_GRAPH_NODE_TYPE_EMPTY: *out = EmptyNode{}; break;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: *out = EventWaitNode{p.eventWait.event}; break;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: *out = EventRecordNode{p.eventRecord.event}; break;
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
      if (const CUresult e = semaphore_payload<SemaphoreSignalNode>(p.extSemSignal, out)) return e;
      break;
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
      if (const CUresult e = semaphore_payload<SemaphoreWaitNode>(p.extSemWait, out)) return e;
      break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      if (!p.memOp.count || !p.memOp.paramArray || p.memOp.count > 256 || p.memOp.flags)
        return CUDA_ERROR_INVALID_VALUE;
      *out = BatchNode{{p.memOp.paramArray, p.memOp.paramArray + p.memOp.count}, p.memOp.flags};
      wanted = p.memOp.ctx;
      break;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: {
      ConditionalNode node;
      if (const CUresult e = conditional_payload(p.conditional, &node)) return e;
      *out = std::move(node);
      wanted = p.conditional.ctx;
      break;
    }
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return memory_payload(p, out, context);
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  if (const CUresult e = context_or_current(wanted, context)) return e;
  if (const auto* event = std::get_if<EventWaitNode>(out)) return known_event(event->event);
  if (const auto* event = std::get_if<EventRecordNode>(out)) return known_event(event->event);
  if (p.type == CU_GRAPH_NODE_TYPE_CONDITIONAL) return CUDA_SUCCESS;
  // Reject parameters here that a launch would reject.
  std::vector<Step> steps;
  return steps_of(**context, *out, &steps);
}

void params_of(const CUgraphNode_st& n, CUgraphNodeParams* out) {
  *out = {};
  out->type = n.type();
  const auto context = n.context.lock();
  if (const auto* k = std::get_if<KernelNode>(&n.payload)) {
    std::memcpy(&out->kernel, &k->launch, sizeof out->kernel);
  } else if (const auto* c = std::get_if<CopyNode>(&n.payload)) {
    out->memcpy = {0, 0, context.get(), c->copy};
  } else if (const auto* s = std::get_if<SetNode>(&n.payload)) {
    out->memset = {s->set.dst,   s->set.pitch,  s->set.value, s->set.elementSize,
                   s->set.width, s->set.height, context.get()};
  } else if (const auto* h = std::get_if<HostNode>(&n.payload)) {
    out->host = {h->call.fn, h->call.userData};
  } else if (const auto* g = std::get_if<ChildNode>(&n.payload)) {
    out->graph = {g->graph.get(), CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE};
  } else if (const auto* w = std::get_if<EventWaitNode>(&n.payload)) {
    out->eventWait.event = w->event;
  } else if (const auto* r = std::get_if<EventRecordNode>(&n.payload)) {
    out->eventRecord.event = r->event;
  } else if (const auto* a = std::get_if<AllocNode>(&n.payload)) {
    std::memcpy(&out->alloc, &a->params, sizeof out->alloc);
    out->alloc.accessDescs = a->access.empty() ? nullptr : a->access.data();
  } else if (const auto* f = std::get_if<FreeNode>(&n.payload)) {
    out->free.dptr = f->address;
  } else if (const auto* b = std::get_if<BatchNode>(&n.payload)) {
    out->memOp = {context.get(), static_cast<unsigned>(b->operations.size()),
                  const_cast<CUstreamBatchMemOpParams*>(b->operations.data()), b->flags};
  } else if (const auto* x = std::get_if<SemaphoreSignalNode>(&n.payload)) {
    out->extSemSignal = {const_cast<CUexternalSemaphore*>(x->semaphores.data()), x->values.data(),
                         static_cast<unsigned>(x->semaphores.size())};
  } else if (const auto* y = std::get_if<SemaphoreWaitNode>(&n.payload)) {
    out->extSemWait = {const_cast<CUexternalSemaphore*>(y->semaphores.data()), y->values.data(),
                       static_cast<unsigned>(y->semaphores.size())};
  } else if (const auto* q = std::get_if<ConditionalNode>(&n.payload)) {
    out->conditional = {q->handle, q->type, static_cast<unsigned>(q->bodies.size()),
                        const_cast<CUgraph*>(q->handles.data()), context.get()};
  }
}

CUresult steps_of(CUctx_st& c, const Payload& payload, std::vector<Step>* out) {
  if (const auto* k = std::get_if<KernelNode>(&payload)) {
    const CUDA_KERNEL_NODE_PARAMS& p = k->launch;
    Shape shape = {
        {p.gridDimX, p.gridDimY, p.gridDimZ}, {p.blockDimX, p.blockDimY, p.blockDimZ}, p.sharedMemBytes};
    if (const auto a = k->attributes.find(CU_LAUNCH_ATTRIBUTE_COOPERATIVE); a != k->attributes.end())
      shape.cooperative = a->second.cooperative != 0;
    const void* const function = p.func ? static_cast<const void*>(p.func) : p.kern;
    return kernel_step(c, function, shape, 0, p.kernelParams, nullptr, &out->emplace_back());
  }
  if (const auto* copy = std::get_if<CopyNode>(&payload))
    return copy_step(c, copy->copy, &out->emplace_back());
  if (const auto* set = std::get_if<SetNode>(&payload)) return set_step(c, set->set, &out->emplace_back());
  if (const auto* host = std::get_if<HostNode>(&payload)) {
    Step& s = out->emplace_back();
    s.op.kind = OpKind::host;
    s.effect.host = true;
    s.effect.run = [call = host->call](uint64_t) { call.fn(call.userData); };
    return CUDA_SUCCESS;
  }
  if (const auto* batch = std::get_if<BatchNode>(&payload)) return memory_operations(batch->operations, out);
  if (const auto* s = std::get_if<SemaphoreSignalNode>(&payload)) return signal_steps(*s, out);
  if (const auto* w = std::get_if<SemaphoreWaitNode>(&payload)) return wait_steps(*w, out);
  return CUDA_SUCCESS;
}

}  // namespace carve::sim
