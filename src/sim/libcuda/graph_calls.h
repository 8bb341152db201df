// Declarations that the files about graphs share, in addition to the structure itself (graph.h).
#pragma once

#include "sim/libcuda/graph.h"

namespace carve::sim {

// Returns a node's parameters as the program sees them. Arrays in them belong to the node. Requires the lock.
void params_of(const CUgraphNode_st&, CUgraphNodeParams*);
// Transfers the ownership of a program's graph to the caller. Returns nullptr if the program does not own the
// graph.
std::shared_ptr<CUgraph_st> take_graph(CUgraph);

// Destroys the object; its destructor runs when the lock has been released.
void bury(std::unique_ptr<CUuserObject_st>);

// Allocation and free nodes; memory_node.cc.
CUresult memory_payload(const CUgraphNodeParams&, Payload*, std::shared_ptr<CUctx_st>* context);
// Checks whether the graph may have this node. Returns CUDA_ERROR_NOT_SUPPORTED for memory nodes in graphs
// that are part of others, and CUDA_ERROR_INVALID_VALUE for a second free.
CUresult memory_fits(const CUgraph_st&, const Payload&);
// Returns whether the graph has memory nodes. Such a graph is not cloned, and no node or edge is removed from
// it.
bool has_memory(const CUgraph_st&);

// External semaphores; memory_node.cc.
CUresult signal_steps(const SemaphoreSignalNode&, std::vector<Step>*);
CUresult wait_steps(const SemaphoreWaitNode&, std::vector<Step>*);

// Sets new parameters for a node of an executable; graph_update.cc.
CUresult set_in_executable(CUgraphExec, CUgraphNode, const CUgraphNodeParams&);

}  // namespace carve::sim
