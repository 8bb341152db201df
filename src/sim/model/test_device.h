// A device in private memory under a virtual clock, for tests of the model: 72 multiprocessors, time slices
// of 2 ms, switches of 100 us, 1 GiB of memory of which 64 MiB are reserved, and 64 MiB per context. Time
// starts at 5 s, because no result may depend on a start at 0.
#pragma once

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "sim/model/device_engine.h"
#include "sim/model/memory.h"

namespace carve::sim {

inline constexpr uint64_t MiB = 1ull << 20;

class TestDevice {
 public:
  static constexpr uint64_t start = 5'000'000'000;
  uint64_t now = start;

  TestDevice() : device_(map()) {
    Facts& f = device_->facts;
    f.multiprocessors = 72;
    f.slice_ns = 2'000'000;
    f.switch_ns = 100'000;
    f.native_bytes = 1ull << 30;
    f.reserved_bytes = f.context_bytes = 64ull << 20;
    device_->engine.owner = device_->engine.next_owner = -1;
    device_->engine.now_ns = device_->engine.accounted_ns = start;
    for (CopyEngine& copy : device_->engine.copy) copy.context = copy.channel = -1;
  }
  TestDevice(const TestDevice& other) : now(other.now), device_(map()) {
    std::memcpy(device_, other.device_, offsetof(Device, rings));
    for (unsigned c = 0; c < max_contexts; ++c)
      for (unsigned k = 0; k < max_channels; ++k)
        for (uint64_t n = device_->contexts[c].channels[k].completed;
             n < device_->contexts[c].channels[k].submitted; ++n)
          device_->rings[c][k][n % ring_size] = other.device_->rings[c][k][n % ring_size];
  }
  TestDevice& operator=(const TestDevice&) = delete;
  ~TestDevice() { munmap(device_, sizeof(Device)); }

  Device& operator*() { return *device_; }
  Device* operator->() { return device_; }

  // Opens a context of client 1.
  unsigned open() {
    unsigned index = 0;
    if (open_context(*device_, 1, 1, now, &index) != Refusal::none) std::abort();
    return index;
  }
  uint64_t push(unsigned context, unsigned channel, OpKind kind, uint64_t duration, unsigned width = 72,
                int priority = 0) {
    Op op{};
    op.kind = kind;
    op.duration_ns = duration;
    op.width = static_cast<uint16_t>(width);
    op.priority = static_cast<int16_t>(priority);
    return sim::push(*device_, context, channel, op, now);
  }
  uint64_t kernel(unsigned context, unsigned channel, uint64_t duration, unsigned width = 72,
                  int priority = 0) {
    return push(context, channel, OpKind::kernel, duration, width, priority);
  }
  const Op& op(unsigned context, unsigned channel, uint64_t n) const {
    return device_->rings[context][channel][n % ring_size];
  }
  void until(uint64_t t) { advance(*device_, now = t < now ? now : t); }
  void at(uint64_t after_start) { until(start + after_start); }

 private:
  static Device* map() {
    void* p = mmap(nullptr, sizeof(Device), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) std::abort();
    return static_cast<Device*>(p);
  }
  Device* device_;
};

}  // namespace carve::sim
