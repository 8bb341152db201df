// A device whose clients are scripted, for tests of the device scheduler.
#pragma once

#include "share/device_scheduler.h"

namespace carve::share {

// The test sets each observation.
struct Script {
  DeviceScheduler device;
  Ns now = 7 * second;
  std::array<Observation, max_clients> seen{};

  unsigned add_client(Entitlement entitlement) { return *device.add_client(entitlement, now); }
  Ns step(Ns later = 0) {
    now += later;
    const Ns next = device.step(now, seen);
    for (Observation& o : seen) o.busy = 0;
    return next;
  }
  bool open(unsigned client) const { return device.lease(client).open; }
  void runs(unsigned client, Ns busy, Ns left = 1 * ms) {
    seen[client].waiting = false;
    seen[client].in_flight = true;
    seen[client].busy = busy;
    seen[client].left = left;
  }
  void rests(unsigned client) {
    seen[client].waiting = seen[client].in_flight = false;
    seen[client].idle_since = now;
  }
  void comes(unsigned client) { seen[client].waiting = true; }
};

constexpr Entitlement fixed(uint32_t bp) { return {.policy = Policy::fixed_share, .share = {bp}}; }
constexpr Entitlement guaranteed(uint32_t bp) {
  return {.policy = Policy::guaranteed_burst_share, .share = {bp}};
}
constexpr Entitlement native(uint32_t bp) { return {.policy = Policy::native_burst_share, .share = {bp}}; }

}  // namespace carve::share
