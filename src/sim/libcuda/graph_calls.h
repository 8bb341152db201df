// What the files of graphs share beside the structure itself (graph.h).
#pragma once

#include "sim/libcuda/graph.h"

namespace carve::sim {

// A node's parameters as the program sees them; arrays belong to the node. With the lock held.
void params_of(const CUgraphNode_st&, CUgraphNodeParams*);
// A graph of the program's that becomes somebody else's; nullptr if it is not the program's.
std::shared_ptr<CUgraph_st> take_graph(CUgraph);

// Its destructor runs when the lock has been let go.
void bury(std::unique_ptr<CUuserObject_st>);

// Allocation and free nodes; memory_node.cc.
CUresult memory_payload(const CUgraphNodeParams&, Payload*, std::shared_ptr<CUctx_st>* context);
// Whether the graph may have this node: CUDA_ERROR_NOT_SUPPORTED for memory in graphs that are part of
// others, CUDA_ERROR_INVALID_VALUE for freeing a second time.
CUresult memory_fits(const CUgraph_st&, const Payload&);
// Such graphs are neither cloned nor do they lose nodes or edges.
bool has_memory(const CUgraph_st&);

// External semaphores; graph_semaphore.cc.
CUresult signal_steps(const SemaphoreSignalNode&, std::vector<Step>*);
CUresult wait_steps(const SemaphoreWaitNode&, std::vector<Step>*);

// New parameters for a node of an executable; graph_update.cc.
CUresult set_in_executable(CUgraphExec, CUgraphNode, const CUgraphNodeParams&);

}  // namespace carve::sim
