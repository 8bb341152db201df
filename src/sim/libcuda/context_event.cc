// Events of whole contexts. Such an event is recorded after all work that the context's streams have at that
// time, and a wait holds all later work of the streams (CUDA driver API, cuCtxRecordEvent,
// cuGreenCtxRecordEvent). Streams that are created after the wait do not wait.
#include <algorithm>

#include "sim/libcuda/capture.h"
#include "sim/libcuda/green.h"
#include "sim/libcuda/step.h"
#include "sim/model/device_engine.h"

using namespace carve::sim;

namespace {

// Returns the last operation of each used channel of a context, or of a green context's partition.
std::vector<Place> channels_of(const std::shared_ptr<CUctx_st>& c, const CUgreenCtx_st* green) {
  std::vector<Place> places;
  Process& p = process();
  const std::lock_guard lock(p.mutex);
  const Locked device(c->own_device());
  advance(c->own_device(), now_ns());
  for (unsigned k = 0; k < max_channels; ++k) {
    const Channel& channel = c->model().channels[k];
    const bool in_part =
        !green || (channel.partition_first == green->part.first && channel.partition == green->part.size);
    if (in_part && (k == 0 || c->channel_users[k] || channel.submitted > channel.completed))
      places.push_back({c, k, channel.submitted - 1});
  }
  return places;
}

CUresult usable(const std::shared_ptr<CUctx_st>& c, CUevent event) {
  if (known_event(event)) return CUDA_ERROR_INVALID_HANDLE;
  return refuse_wait(*c);
}

CUresult record(const std::shared_ptr<CUctx_st>& c, const CUgreenCtx_st* green, CUevent event) {
  if (const CUresult e = usable(c, event)) return e;
  if (event->context != c.get()) return CUDA_ERROR_INVALID_HANDLE;
  std::vector<Place> behind = channels_of(c, green);
  std::erase_if(behind, [](const Place& p) { return p.sequence == UINT64_MAX || is_over(p); });
  unsigned channel = 0;
  {
    const std::lock_guard lock(process().mutex);
    channel = take_channel(*c, false);
  }
  const CUresult e = submit_record(event, c, channel, behind, nullptr);
  const std::lock_guard lock(process().mutex);
  give_channel(*c, channel);
  return e;
}

CUresult wait(const std::shared_ptr<CUctx_st>& c, const CUgreenCtx_st* green, CUevent event) {
  if (const CUresult e = usable(c, event)) return e;
  Place recorded;
  if (const CUresult e = recorded_place(event, &recorded)) return e;
  if (!recorded.context) return CUDA_SUCCESS;
  for (const Place& p : channels_of(c, green)) {
    Step mark;
    mark.op.kind = OpKind::mark;
    if (const CUresult e = submit_after(c, p.channel, {&recorded, 1}, std::move(mark), nullptr)) return e;
  }
  return CUDA_SUCCESS;
}

using Action = CUresult (*)(const std::shared_ptr<CUctx_st>&, const CUgreenCtx_st*, CUevent);
CUresult with_context(CUcontext handle, CUevent event, Action f) {
  if (const CUresult e = entered()) return e;
  const auto c = find_context(handle ? handle : top_context());
  return c ? f(c, nullptr, event) : CUDA_ERROR_INVALID_CONTEXT;
}
CUresult with_green(CUgreenCtx green, CUevent event, Action f) {
  if (const CUresult e = entered()) return e;
  const auto c = primary_of(green);
  return c ? f(c, green, event) : CUDA_ERROR_INVALID_CONTEXT;
}

}  // namespace

EXPORT CUresult cuCtxRecordEvent(CUcontext c, CUevent e) { return with_context(c, e, record); }
EXPORT CUresult cuCtxWaitEvent(CUcontext c, CUevent e) { return with_context(c, e, wait); }
EXPORT CUresult cuGreenCtxRecordEvent(CUgreenCtx g, CUevent e) { return with_green(g, e, record); }
EXPORT CUresult cuGreenCtxWaitEvent(CUgreenCtx g, CUevent e) { return with_green(g, e, wait); }
