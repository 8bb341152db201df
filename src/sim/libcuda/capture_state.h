// The state of a capture, shared by what happens to it while work is captured (capture.cc) and by the calls
// that begin, end and describe it (capture_calls.cc): its graph, and for each stream in it the nodes that the
// stream's next one will follow.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "sim/libcuda/capture.h"

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

// What a thread exchanges by cuThreadExchangeStreamCaptureMode.
CUstreamCaptureMode& thread_mode();
// An address that is the calling thread's alone.
inline const void* this_thread() { return &thread_mode(); }

// All with the lock of the graphs held.

// The capture of a stream, or nullptr.
inline Capture* capture_of(const CUstream_st& s) { return s.capture; }
// Makes a capture known to all that ask; and what keeps a known one alive.
void begin_capture(const std::shared_ptr<Capture>&);
std::shared_ptr<Capture> keep_capture(Capture&);
// Lets its streams go on as before.
void end_capture(Capture&);
// Marks it invalid and returns the reason.
CUresult spoil(Capture&, CUresult why);
bool alive(const Capture&);
// Nodes that the program destroyed are followed no more.
void prune(Tail&);
void add_follows(Tail&, const std::vector<Edge>& more);

}  // namespace carve::sim
