#include "sim/libcuda/holding.h"

#include "sim/libcuda/schedule.h"
#include "sim/model/memory.h"

namespace carve::sim {

CUresult take_bytes(unsigned device, uint64_t bytes) {
  Process& p = process();
  Device& d = *p.set.devices[device];
  const Locked lock(d);
  if (bytes > free_bytes(d))
    sweep(p.set, device, now_ns(), true);  // Memory of dead processes is released before a refusal.
  return refusal(take_for(d, p.slot, p.generation, bytes));
}

void give_bytes(unsigned device, uint64_t bytes) {
  Process& p = process();
  Device& d = *p.set.devices[device];
  const Locked lock(d);
  give_for(d, p.slot, p.generation, bytes);
}

void wait_device(unsigned device) {
  Process& p = process();
  std::vector<std::shared_ptr<CUctx_st>> contexts;
  {
    const std::lock_guard lock(p.mutex);
    for (const auto& [handle, c] : p.contexts)
      if (c->device == device) contexts.push_back(c);
  }
  for (const auto& c : contexts) wait_idle(*c);
}

}  // namespace carve::sim
