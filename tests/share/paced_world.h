// Simulates one program in a slice in virtual time. The guest library, the meter and the device scheduler are
// the real ones. The host, the driver, the device and the arbiter's thread are modelled: calls take host
// time, threads wake up late, and kernels and fences run one after the other. The neighbour is a model that
// always has work.
#pragma once

#include <deque>
#include <optional>
#include <random>

#include "guest/launch/gate.h"
#include "guest/testing/clock_fake.h"
#include "guest/testing/driver_fake.h"
#include "node/compute/lease_word.h"
#include "node/compute/meter.h"

namespace carve::share {

// Assumed costs of the driver's calls and of the host. They were not measured individually.
struct Costs {
  Ns launch = 4 * us;
  Ns fence = 3 * us, fence_on_device = 2 * us;  // Cost of cuStreamWriteValue64.
  Ns capture_query = 100;                       // Cost of cuStreamIsCapturing.
  Ns wake = 70 * us;                            // Time from a thread's wake until it runs.
  Ns context_switch = 70 * us;
  Ns clock = 30;
};

class PacedWorld final : public guest::VirtualClock {
 public:
  explicit PacedWorld(Costs costs = {}) : costs_(costs) {
    world_ = this;
    guest::virtual_clock = this;
    slice_.heartbeat->monotonic_ns = UINT64_MAX;
    load_driver();
  }
  PacedWorld(const PacedWorld&) = delete;
  PacedWorld& operator=(const PacedWorld&) = delete;
  ~PacedWorld() {
    guest::this_thread = {nullptr, 0, guest::this_thread.leaves};
    guest::virtual_clock = nullptr;
    world_ = nullptr;
  }

  // Gives the slice an entitlement. Before this call its gate is open and the program runs natively.
  void arbitrate(const Entitlement& own, std::optional<Entitlement> neighbour = {}) {
    client_ = *scheduler_.add_client(own, now_);
    if (neighbour) neighbour_ = scheduler_.add_client(*neighbour, now_);
    write_lease();
    look_at_ = now_;
    pass(1);
  }

  Ns now() const { return now_; }
  const ClientCounters& counters() const { return scheduler_.counters(client_); }
  const ClientCounters& counters_of_neighbour() const { return scheduler_.counters(*neighbour_); }
  const guest::ThreadLaunchState& thread(unsigned i) const { return slice_.process->launch_state[i]; }

  // Lets the host work for this time.
  void pass(Ns ns) {
    const Ns end = now_ + ns;
    do {
      Ns next = std::min(end, look_at_);
      if (!queue_.empty()) next = std::min(next, queue_.front().end);
      now_ = std::max(now_, next);
      while (!queue_.empty() && queue_.front().end <= now_) {
        if (queue_.front().word != nullptr) queue_.front().word->store(queue_.front().value);
        queue_.pop_front();
      }
      if (look_at_ <= now_) look();
    } while (now_ < end || look_at_ <= now_);
  }

  bool is_timer_regular = false;  // The timer is late by 15 us each time.
  Ns wake_latency = costs_.wake;  // See DeviceScheduler::set_wake_latency().

  struct Counts {
    uint64_t launches = 0, fences = 0, sleeps = 0;
    uint64_t polls = 0;
    uint64_t intrusions = 0;  // Launches and fences under the neighbour's lease.
    Ns kernels = 0;           // Work of the program and of its neighbour.
  } counts;

 private:
  struct Item {
    Ns end;
    std::atomic<uint64_t>* word;
    uint64_t value;
  };
  static constexpr Ns neighbour_drain = 900 * us;  // Time from the end of its lease.

  static void load_driver() {
    using namespace guest;
    on<&cuLaunchKernel>([](CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                           CUstream, void** arguments, void**) {
      world_->pass(world_->costs_.launch);
      world_->put(*static_cast<Ns*>(arguments[0]), nullptr, 0);
      world_->counts.kernels += *static_cast<Ns*>(arguments[0]);
      ++world_->counts.launches;
      return CUDA_SUCCESS;
    });
    on<&cuStreamWriteValue64_v2>([](CUstream, CUdeviceptr at, cuuint64_t value, unsigned) {
      world_->pass(world_->costs_.fence);
      world_->put(world_->costs_.fence_on_device, reinterpret_cast<std::atomic<uint64_t>*>(at), value);
      ++world_->counts.fences;
      return CUDA_SUCCESS;
    });
    on<&cuStreamIsCapturing>([](CUstream, CUstreamCaptureStatus* status) {
      world_->pass(world_->costs_.capture_query);
      *status = CU_STREAM_CAPTURE_STATUS_NONE;
      return CUDA_SUCCESS;
    });
    on<&cuCtxSynchronize>([] {
      if (world_->free_at_ > world_->now_) world_->pass(world_->free_at_ - world_->now_);
      return CUDA_SUCCESS;
    });
    on<&cuDeviceGetAttribute>([](int* value, CUdevice_attribute, CUdevice) {
      *value = 1;
      return CUDA_SUCCESS;
    });
    on<&cuThreadExchangeStreamCaptureMode>([](CUstreamCaptureMode*) { return CUDA_SUCCESS; });
    on<&cuMemHostRegister_v2>([](void*, size_t, unsigned) { return CUDA_SUCCESS; });
    on<&cuMemHostGetDevicePointer_v2>([](CUdeviceptr* out, void* at, unsigned) {
      *out = reinterpret_cast<CUdeviceptr>(at);
      return CUDA_SUCCESS;
    });
    on<&cuCtxGetDevice>([](CUdevice* device) {
      *device = 0;
      return CUDA_SUCCESS;
    });
    on<&cuCtxGetCurrent>([](CUcontext* context) {
      *context = reinterpret_cast<CUcontext>(0x1000);
      return CUDA_SUCCESS;
    });
    on<&cuDeviceGetUuid>([](CUuuid* uuid, CUdevice) {
      *uuid = {};
      uuid->bytes[0] = 1;
      return CUDA_SUCCESS;
    });
    on<&cuEventCreate>([](CUevent*, unsigned) { return CUDA_ERROR_NOT_SUPPORTED; });
  }

  uint64_t monotonic_ns() override {
    pass(costs_.clock);
    return static_cast<uint64_t>(now_);
  }
  void sleep_for(uint64_t ns) override {
    ++counts.sleeps;
    pass(static_cast<Ns>(ns) + costs_.wake);
  }
  void sleep_on(const std::atomic<uint64_t>& word, uint64_t value, uint64_t ns) override {
    const Ns end = now_ + static_cast<Ns>(ns);
    // The thread has woken the arbiter unless a poll is due soon.
    if (look_at_ > now_ + 1100 * us) look_at_ = now_ + costs_.wake;
    while (now_ < end && word.load() == value) pass(std::min<Ns>(end - now_, 5 * us));
    pass(costs_.wake);
  }

  void put(Ns ns, std::atomic<uint64_t>* word, uint64_t value) {
    const bool intrudes = neighbour_ && scheduler_.lease(*neighbour_).open;
    counts.intrusions += intrudes;
    const Ns after = neighbour_ends_ == 0 || intrudes ? 0 : neighbour_ends_ + costs_.context_switch;
    free_at_ = std::max({now_, free_at_, after}) + ns;
    queue_.push_back({free_at_, word, value});
  }

  Observation neighbour() const {
    const bool open = scheduler_.lease(*neighbour_).open;
    const Ns until = open ? now_ : std::min(now_, neighbour_ends_);
    Observation seen;
    seen.waiting = !open;
    seen.in_flight = open ? now_ > neighbour_begins_ : now_ < neighbour_ends_;
    seen.back_pressured = open && seen.in_flight;
    seen.busy = std::max<Ns>(0, until - std::max(looked_at_, neighbour_begins_));
    seen.left = open ? neighbour_drain : std::max<Ns>(0, neighbour_ends_ - now_);
    seen.idle_since = neighbour_ends_;
    seen.longest = 200 * us;
    return seen;
  }
  void look() {
    std::array<Observation, max_clients> seen{};
    seen[client_] = meter_.read({slice_.process->work, 1}, slots_, 0, now_);
    const bool was_open = neighbour_ && scheduler_.lease(*neighbour_).open;
    if (neighbour_) seen[*neighbour_] = neighbour();
    if (neighbour_) counts.kernels += seen[*neighbour_].busy;
    ++counts.polls;
    looked_at_ = now_;
    scheduler_.set_wake_latency(wake_latency);
    const Ns next = scheduler_.step(now_, seen);
    const bool open = neighbour_ && scheduler_.lease(*neighbour_).open;
    if (neighbour_ && scheduler_.lease(*neighbour_).imminent && neighbour_wakes_ == never)
      neighbour_wakes_ = now_ + costs_.wake;
    if (open && !was_open) {
      const Ns runs = std::min(now_ + costs_.wake, std::max(now_, std::exchange(neighbour_wakes_, never)));
      neighbour_begins_ = runs + costs_.context_switch;
    }
    if (!open && was_open) neighbour_ends_ = now_ + neighbour_drain;
    write_lease();
    // A timer is late by a different time each time, so that polls and the program's steps do not
    // synchronise.
    const Ns late = is_timer_regular ? 15 * us : std::uniform_int_distribution<Ns>(5 * us, 45 * us)(random_);
    look_at_ = next == never ? never : next + late;
  }
  void write_lease() {
    const Lease& lease = scheduler_.lease(client_);
    if (number_ != 0 && lease == lease_) return;
    if (number_ == 0 || lease.open != lease_.open) ++number_;
    node::write_lease(slice_.control->devices[0], lease, scheduler_.tuning(), meter_.threads(), number_);
    lease_ = lease;
  }

  static inline PacedWorld* world_ = nullptr;
  const Costs costs_;
  guest::Attached slice_;
  std::mt19937_64 random_{1};
  Ns now_ = 5 * second, free_at_ = 0, look_at_ = never, looked_at_ = 0;
  std::deque<Item> queue_;
  DeviceScheduler scheduler_;
  node::Meter meter_;
  std::vector<unsigned> slots_{0};
  unsigned client_ = 0;
  std::optional<unsigned> neighbour_;
  Ns neighbour_begins_ = 0, neighbour_ends_ = 0;
  Ns neighbour_wakes_ = never;  // Set by a lease whose gate is about to open.
  Lease lease_;
  uint32_t number_ = 0;
};

}  // namespace carve::share
