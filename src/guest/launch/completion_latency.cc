#include "guest/launch/completion_latency.h"

#include <algorithm>
#include <span>

#include "guest/launch/busy_time.h"

namespace carve::guest {
namespace {

constexpr uint32_t every = 16, every_uncontended = 256, first_ones = 4;
constexpr uint64_t usual_ns = 20'000;

CUevent event_of(uint64_t handle) { return reinterpret_cast<CUevent>(handle); }

bool make_events(LatencySample& s, uint64_t context) {
  for (uint64_t& handle : s.event) {
    CUevent event = nullptr;
    if (driver<&cuEventCreate>(&event, CU_EVENT_DEFAULT) != CUDA_SUCCESS) return false;
    handle = reinterpret_cast<uint64_t>(event);
  }
  s.context = context;
  return true;
}

// Returns whether no other stream has work, which could end later than this stream's.
bool alone_on(const ThreadLaunchState& l, uint64_t stream) {
  uint32_t slot = no_stream_slot;
  for (const StreamEntry& entry : l.stream) {
    if (entry.name == stream + 1)
      slot = entry.slot;
    else if (entry.pending != 0)
      return false;
  }
  return l.without_slot == 0 && std::ranges::all_of(std::span(l.fence, l.fence_count),
                                                    [slot](const Fence& m) { return m.slot == slot; });
}

}  // namespace

void begin_latency_sample(ThreadLaunchState& l, uint64_t stream, bool uncontended) {
  LatencySample& s = l.sample;
  s.open = false;
  const uint32_t turns = uncontended ? every_uncontended : every;
  if (l.shared || s.refused || (++s.turn > first_ones && s.turn % turns != 0)) return;
  CUcontext current = nullptr;
  if (driver<&cuCtxGetCurrent>(&current) != CUDA_SUCCESS || current == nullptr) return;
  const auto context = reinterpret_cast<uint64_t>(current);
  if (s.context != context && !make_events(s, context)) {
    s.refused = true;
    return;
  }
  s.stream = stream;
  s.open = driver<&cuEventRecord>(event_of(s.event[0]), handle_of(stream)) == CUDA_SUCCESS;
}

void close_latency_sample(ThreadLaunchState& l) {
  LatencySample& s = l.sample;
  if (!s.open) return;
  s.open = alone_on(l, s.stream) && !captured(s.stream) &&
           driver<&cuEventRecord>(event_of(s.event[1]), handle_of(s.stream)) == CUDA_SUCCESS;
}

void finish_latency_sample(ThreadLaunchState& l, uint64_t took) {
  LatencySample& s = l.sample;
  if (!s.open) return;
  s.open = false;
  float ms = 0;
  if (driver<&cuEventElapsedTime>(&ms, event_of(s.event[0]), event_of(s.event[1])) != CUDA_SUCCESS) return;
  const auto device_ns = static_cast<uint64_t>(ms * 1e6F);
  if (ms < 0 || device_ns > took) return;
  // Keeps a running mean. A single stall of the machine counts at most as twice the usual latency.
  const uint64_t late = took - device_ns;
  s.latency_ns = s.taken == 0 ? late : (7 * s.latency_ns + std::min(late, 2 * s.latency_ns + usual_ns)) / 8;
  ++s.taken;
}

void drop_latency_sample(ThreadLaunchState& l, uint64_t context) {
  if (l.sample.context == context) l.sample.context = 0, l.sample.open = false;
}

}  // namespace carve::guest
