// Graphs of this process: nodes with their operations, edges with their data, and the owners that keep a
// handle valid. A graph is a template. Instantiation copies it (graph_exec.h), so a program may change or
// destroy it while an executable runs.
//
// One mutex guards all graphs, nodes, user objects and captures. It is taken before Process::mutex and never
// held while a function of the program runs: after a GraphLock has released the mutex, it calls the
// destructors of user objects that have lost their last reference.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <variant>
#include <vector>

#include "sim/libcuda/driver_state.h"
#include "sim/libcuda/step.h"

namespace carve::sim {

struct GraphBlock;  // sim/libcuda/graph_memory.h

// The arguments of a launch, copied when the node is made, and the offset of each. kernelParams points to
// them.
struct Arguments {
  std::vector<char> bytes;
  std::vector<void*> pointers;
};

// One struct per kind of node, in the order of CUgraphNodeType, so that the index in Payload is the type.
struct KernelNode {
  CUDA_KERNEL_NODE_PARAMS launch = {};  // kernelParams points to `arguments`; extra is null.
  std::shared_ptr<const Arguments> arguments;
  std::map<int, CUlaunchAttributeValue> attributes;
};
struct CopyNode {
  CUDA_MEMCPY3D copy = {};
};
struct SetNode {
  CUDA_MEMSET_NODE_PARAMS set = {};
};
struct HostNode {
  CUDA_HOST_NODE_PARAMS call = {};
};
struct ChildNode {
  std::shared_ptr<CUgraph_st> graph;
};
struct EmptyNode {};
struct EventWaitNode {
  CUevent event = nullptr;
};
struct EventRecordNode {
  CUevent event = nullptr;
};
struct SemaphoreSignalNode {
  std::vector<CUexternalSemaphore> semaphores;
  std::vector<CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS> values;
};
struct SemaphoreWaitNode {
  std::vector<CUexternalSemaphore> semaphores;
  std::vector<CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS> values;
};
struct AllocNode {
  CUDA_MEM_ALLOC_NODE_PARAMS params = {};
  std::vector<CUmemAccessDesc> access;
  std::shared_ptr<GraphBlock> block;
};
struct FreeNode {
  CUdeviceptr address = 0;
};
struct BatchNode {
  std::vector<CUstreamBatchMemOpParams> operations;
  unsigned flags = 0;
};
// The bodies of a conditional node: one or two for IF, one for WHILE, `size` for SWITCH. The handle's value
// selects the body that runs.
struct ConditionalNode {
  CUgraphConditionalHandle handle = 0;
  CUgraphConditionalNodeType type = CU_GRAPH_COND_TYPE_IF;
  std::vector<std::shared_ptr<CUgraph_st>> bodies;
  std::vector<CUgraph> handles;  // The handles that phGraph_out points at.
};
using Payload = std::variant<KernelNode, CopyNode, SetNode, HostNode, ChildNode, EmptyNode, EventWaitNode,
                             EventRecordNode, SemaphoreSignalNode, SemaphoreWaitNode, AllocNode, FreeNode,
                             BatchNode, ConditionalNode>;

struct Edge {
  CUgraphNode_st* node = nullptr;
  CUgraphEdgeData data = {};
};

// The value that a conditional handle has at the start of each launch.
struct Condition {
  unsigned start = 0;
};

}  // namespace carve::sim

struct CUgraphNode_st {
  CUgraph_st* graph = nullptr;
  uint64_t id = 0;      // Never used twice.
  uint64_t origin = 0;  // Id of the node from which this one was cloned.
  std::weak_ptr<CUctx_st> context;
  carve::sim::Payload payload;
  std::vector<carve::sim::Edge> in, out;

  CUgraphNodeType type() const { return static_cast<CUgraphNodeType>(payload.index()); }
};

struct CUgraph_st {
  uint64_t id = 0;
  bool owned = false;  // Owned by a node of another graph, so the program may not destroy it.
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;  // In the order of their creation.
  std::map<CUuserObject, unsigned> objects;
  std::map<CUgraphConditionalHandle, carve::sim::Condition> conditions;

  CUgraph_st();
  ~CUgraph_st();
  CUgraph_st(const CUgraph_st&) = delete;
  CUgraph_st& operator=(const CUgraph_st&) = delete;
};

struct CUuserObject_st {
  void* data = nullptr;
  CUhostFn destroy = nullptr;
  unsigned references = 0;
};

namespace carve::sim {

class GraphLock {
 public:
  GraphLock();
  ~GraphLock();
  GraphLock(const GraphLock&) = delete;
  GraphLock& operator=(const GraphLock&) = delete;
};

// All functions below require the lock.

bool is_graph(CUgraph);
bool is_node(CUgraphNode);
// Creates a graph for the program.
CUgraph_st* new_graph();
// Destroys a graph of the program. Fails with CUDA_ERROR_INVALID_VALUE if the program does not own it.
CUresult destroy_graph(CUgraph);
// Adds a node. Fails with CUDA_ERROR_INVALID_VALUE if a dependency belongs to another graph or is named
// twice.
CUresult add_node(CUgraph_st&, const CUgraphNode* dependencies, const CUgraphEdgeData* edges, size_t count,
                  std::weak_ptr<CUctx_st> context, Payload, CUgraphNode_st** out);
CUresult add_edge(CUgraphNode_st& from, CUgraphNode_st& to, const CUgraphEdgeData*);
void remove_node(CUgraphNode_st&);
// Returns a copy whose nodes record the nodes from which they were cloned. The copy holds its own references
// to the user objects.
std::shared_ptr<CUgraph_st> clone_graph(const CUgraph_st&, bool owned);
// Returns the node of `graph` or of its child graphs that was cloned from the node with this id, or nullptr
// if there is none.
CUgraphNode_st* find_clone(const CUgraph_st& graph, uint64_t origin);
void retain_object(CUuserObject, unsigned count);
void release_object(CUuserObject, unsigned count);

// Translates between a program's parameters and a node's payload (graph_params.cc). `context` is the context
// in the parameters, or otherwise the current one.
CUresult payload_of(const CUgraphNodeParams&, Payload*, std::shared_ptr<CUctx_st>* context);
CUresult kernel_payload(const CUDA_KERNEL_NODE_PARAMS&, KernelNode*);
// Creates the steps of a node for the model. Only kernels, copies, sets, host functions and memory operations
// have steps.
CUresult steps_of(CUctx_st&, const Payload&, std::vector<Step>*);

}  // namespace carve::sim
