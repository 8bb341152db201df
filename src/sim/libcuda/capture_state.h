// The state of a capture, shared by the capture of work (capture.cc) and by the calls that begin, end and
// describe a capture (capture_calls.cc). The state is the graph and, for each stream in it, the nodes that
// the stream's next node will follow.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "sim/libcuda/capture.h"

namespace carve::sim {

struct Tail {
  std::vector<Edge> follows;
  std::vector<CUgraphNode> shown;  // The nodes that cuStreamGetCaptureInfo returned.
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

// Returns the mode that cuThreadExchangeStreamCaptureMode exchanges.
CUstreamCaptureMode& thread_mode();
// Returns an address that is unique to the calling thread.
inline const void* this_thread() { return &thread_mode(); }

// All functions below require the lock of the graphs.

// Returns the capture of a stream, or nullptr.
inline Capture* capture_of(const CUstream_st& s) { return s.capture; }
// Makes a capture visible to all calls and keeps it alive while it is visible.
void begin_capture(const std::shared_ptr<Capture>&);
std::shared_ptr<Capture> keep_capture(Capture&);
// Returns the capture's streams to normal execution.
void end_capture(Capture&);
// Marks the capture as invalid and returns `why`.
CUresult spoil(Capture&, CUresult why);
bool alive(const Capture&);
// Removes the nodes that the program destroyed.
void prune(Tail&);
void add_follows(Tail&, const std::vector<Edge>& more);

}  // namespace carve::sim
