// The driver's state for the process that loaded it: the set, the contexts, streams, events and modules.
//
// Three rules apply, because the process belongs to another program. (1) No object is destroyed when main
// returns: the state is allocated once and never freed, so calls from atexit handlers still work. (2) No
// state survives a fork. The state is stored behind a page that the kernel wipes in the child
// (MADV_WIPEONFORK), where every call then returns CUDA_ERROR_NOT_INITIALIZED, as NVIDIA's driver does. (3)
// No lock is held while the program's code runs.
//
// Locks, outermost first: graphs and captures (graph.h), Process::mutex (tables of objects),
// Context::performing, Context::pending, the device's own lock in the shared file.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "abi/cuda.h"
#include "sim/model/memory.h"
#include "sim/set/set.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

// The handles of the interface are pointers to these types.
struct CUctx_st;
struct CUstream_st;

namespace carve::sim {

// The action of this process when an operation of a channel completes: it moves the bytes of a copy, records
// the time of an event, or runs a host function.
struct Effect {
  uint64_t sequence = 0;
  std::function<void(uint64_t end_ns)> run;
  // Set for a host operation that only waits. Returns 0 when the wait is over, otherwise the time of the next
  // poll.
  std::function<uint64_t(uint64_t now)> gate;
  bool host = false;  // `run` is the program's function, which only the service thread may call.
  bool lazy = false;  // Only calls of this driver can see the effect, so no thread needs to wake up for it.
};

// A recording of an event: a position in a channel.
struct Recording {
  std::weak_ptr<CUctx_st> context;
  unsigned channel = 0;
  uint64_t sequence = 0;
  std::atomic<uint64_t> end_ns{0};
  uint64_t number = 0;  // The recording's number, for an event that several processes share.
};

struct SmallBlock;  // sim/libcuda/heap.h
struct Capture;     // sim/libcuda/capture.h
struct CapturedEvent;
class SharedEvent;  // sim/libcuda/ipc_event.h

}  // namespace carve::sim

struct CUstream_st {
  CUctx_st* context;
  unsigned channel;
  unsigned flags;
  int priority;
  unsigned long long id;
  carve::sim::Capture* capture = nullptr;  // Set while the stream's work goes to a graph; see capture.h.
  CUgreenCtx green = nullptr;
};

struct CUctx_st : std::enable_shared_from_this<CUctx_st> {
  unsigned device = 0;  // Ordinal in the set, not among the visible devices.
  unsigned index = 0;   // Index among the 64 contexts of the device.
  uint64_t serial = 0;
  unsigned flags = 0;
  unsigned long long id = 0;
  bool primary = false;
  std::atomic<bool> destroyed{false};
  unsigned version = 3020;
  CUfunc_cache cache = CU_FUNC_CACHE_PREFER_NONE;
  CUsharedconfig shared_config = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
  std::map<int, size_t> limits;
  CUstream_st legacy = {};
  unsigned channel_users[carve::sim::max_channels] = {};
  std::vector<unsigned> graph_channels;  // Channels over which graphs are spread; see graph_launch.cc.
  std::unordered_map<uint64_t, std::unique_ptr<CUstream_st>> thread_streams;
  std::vector<std::unique_ptr<carve::sim::SmallBlock>> small_blocks, array_blocks, code_blocks;
  std::unordered_set<CUctx_st*> peers;

  std::mutex performing;
  std::mutex pending;
  std::deque<carve::sim::Effect> effects[carve::sim::max_channels];
  std::atomic<unsigned> outstanding{0};  // Effects that have not been performed yet.

  carve::sim::Device& own_device() const;
  carve::sim::Context& model() const { return own_device().contexts[index]; }
};

struct CUevent_st {
  unsigned flags;
  CUctx_st* context;
  std::shared_ptr<carve::sim::Recording> recording;
  std::shared_ptr<carve::sim::CapturedEvent>
      captured;  // Set instead of `recording` if the last recording was captured.
  std::shared_ptr<carve::sim::SharedEvent> shared;  // Set if the event is shared with other processes.
};

namespace carve::sim {

struct Primary {
  std::shared_ptr<CUctx_st> context;
  unsigned references = 0;
  unsigned flags = 0;
};

struct Process {
  Set set;
  uint32_t slot = 0;
  uint64_t generation = 0;
  unsigned visible[max_devices] = {};
  unsigned visible_count = 0;

  std::mutex mutex;
  std::unordered_map<CUctx_st*, std::shared_ptr<CUctx_st>> contexts;
  std::unordered_map<CUctx_st*, CUgreenCtx> faces;  // Handles from cuCtxFromGreenCtx; see green.h.
  std::atomic<unsigned> green_count{0};
  std::unordered_set<CUstream_st*> streams;
  std::unordered_set<CUevent_st*> events;
  Primary primaries[max_devices];
  std::atomic<unsigned long long> next_id{1};

  // The thread that performs effects when no thread waits for them.
  std::mutex service_mutex;
  std::condition_variable service_wake;
  bool service_started = false;
  bool service_called = false;
};

// Returns the state of this process. Valid after entered() has returned CUDA_SUCCESS.
Process& process();

// Called first in every entry point. Returns CUDA_ERROR_NOT_INITIALIZED before cuInit and in forked children.
CUresult entered();

// Returns the calling thread's current context. Fails with CUDA_ERROR_INVALID_CONTEXT without one, and with
// its sticky error if the context is broken.
CUresult current(std::shared_ptr<CUctx_st>* out);
// Does the same but ignores the sticky error, for calls that work in broken contexts (destroy, pop, get).
CUresult current_even_broken(std::shared_ptr<CUctx_st>* out);
// Returns the result of current().
CUresult has_context();
// Returns the result of a call with an invalid handle. NVIDIA's driver 550 looks for the handle's context
// first, so without a current context the result is CUDA_ERROR_INVALID_CONTEXT, except for a null handle.
CUresult unknown_handle(const void* handle);
// Returns a context by its handle.
std::shared_ptr<CUctx_st> find_context(CUcontext);
// Returns the ordinal in the set of a visible device.
CUresult device_of(CUdevice visible, unsigned* device);
int visible_of(unsigned device);

// Change the calling thread's stack of contexts.
void push_context(CUctx_st*);
CUctx_st* top_context();
bool pop_context(CUctx_st** popped);
void replace_top_context(CUctx_st*);

// Creates a context on a device; primary contexts pass `primary`.
CUresult create_context(unsigned device, unsigned flags, bool primary, std::shared_ptr<CUctx_st>* out);
void destroy_context(const std::shared_ptr<CUctx_st>&);

// Writes "name" to SIMGPU_LOG once. Returns the result of calls that the simulator does not support.
CUresult unsupported(const char* name);

CUresult refusal(Refusal);

}  // namespace carve::sim
