// Launches that are checked and timed but not yet submitted, for streams, captures and graph nodes.
#pragma once

#include "sim/libcuda/graph.h"
#include "sim/libcuda/step.h"

namespace carve::sim {

struct Shape {
  unsigned grid[3], block[3], shared;
  bool cooperative = false;
  const int* priority = nullptr;  // Null means the stream's priority.
};

// Creates the operation of a launch of a CUfunction or CUkernel in a context; returns the driver's own errors
// for an invalid launch.
CUresult kernel_step(CUctx_st&, const void* function, const Shape&, int stream_priority, void** parameters,
                     void** extra, Step*);

// Copies the arguments, which may be passed in either of two ways.
CUresult copy_arguments(const void* function, void** parameters, void** extra, Arguments*);

}  // namespace carve::sim
