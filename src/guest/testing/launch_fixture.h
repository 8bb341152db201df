// For unit tests of launches: a minimal device whose streams run when the test requests it. It uses only a
// kernel's stream; fences are executed in order.
#pragma once

#include <deque>
#include <map>
#include <mutex>

#include "guest/launch/gate.h"
#include "guest/testing/driver_fake.h"

namespace carve::guest {

struct LaunchWorld {
  struct Item {
    std::atomic<uint64_t>* word = nullptr;  // Null for a kernel.
    uint64_t value = 0;
  };
  std::mutex mutex;
  std::map<CUstream, std::deque<Item>> streams;
  std::map<CUevent, std::pair<CUstream, size_t>> events;
  int launched = 0, fences = 0, recorded = 0, registered = 0;
  int memory_operations = 1;
  float device_ms = 0;   // Milliseconds that timing events report; 0 if events are not supported.
  bool at_once = false;  // Every launch completes immediately.
  CUstream captured = reinterpret_cast<CUstream>(~0ull);
  CUresult fence_result = CUDA_SUCCESS;

  // Completes up to `count` kernels of the stream and the fences after them.
  void run(CUstream stream, int count = 1 << 30) {
    std::lock_guard lock(mutex);
    auto& items = streams[stream];
    while (!items.empty() && (count > 0 || items.front().word != nullptr)) {
      if (items.front().word != nullptr) {
        items.front().word->store(items.front().value, std::memory_order_release);
      } else {
        --count;
      }
      items.pop_front();
    }
  }
  void put(CUstream stream, Item item) {
    {
      std::lock_guard lock(mutex);
      streams[stream].push_back(item);
    }
    if (at_once) run(stream);
  }
  int count(const int& of) {
    std::lock_guard lock(mutex);
    return of;
  }
};
inline LaunchWorld* launches = nullptr;

class LaunchTest : public DriverTest {
 protected:
  LaunchTest() {
    launches = &world_of_launches_;
    this_thread = {nullptr, 0, this_thread.leaves};
    on<&cuLaunchKernel>([](CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                           CUstream stream, void**, void**) {
      launches->put(stream, {});
      std::lock_guard lock(launches->mutex);
      ++launches->launched;
      return CUDA_SUCCESS;
    });
    on<&cuLaunchKernel_ptsz>([](CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                unsigned bz, unsigned shared, CUstream stream, void** params, void** extra) {
      if (stream == nullptr) stream = reinterpret_cast<CUstream>(2);
      return driver<&cuLaunchKernel>(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
    });
    on<&cuGraphLaunch>([](CUgraphExec, CUstream stream) {
      return driver<&cuLaunchKernel>(nullptr, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
    });
    on<&cuStreamIsCapturing>([](CUstream stream, CUstreamCaptureStatus* status) {
      *status =
          stream == launches->captured ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
      return CUDA_SUCCESS;
    });
    on<&cuStreamGetCtx>([](CUstream, CUcontext* context) { return driver<&cuCtxGetCurrent>(context); });
    on<&cuDeviceGetAttribute>([](int* value, CUdevice_attribute, CUdevice) {
      *value = launches->memory_operations;
      return CUDA_SUCCESS;
    });
    on<&cuThreadExchangeStreamCaptureMode>([](CUstreamCaptureMode*) { return CUDA_SUCCESS; });
    on<&cuMemHostRegister_v2>([](void*, size_t, unsigned) {
      ++launches->registered;
      return CUDA_SUCCESS;
    });
    on<&cuMemHostGetDevicePointer_v2>([](CUdeviceptr* out, void* at, unsigned) {
      *out = reinterpret_cast<CUdeviceptr>(at);
      return CUDA_SUCCESS;
    });
    on<&cuStreamWriteValue64_v2>([](CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned) {
      if (launches->fence_result != CUDA_SUCCESS) return launches->fence_result;
      launches->put(stream, {reinterpret_cast<std::atomic<uint64_t>*>(at), value});
      std::lock_guard lock(launches->mutex);
      ++launches->fences;
      return CUDA_SUCCESS;
    });
    on<&cuEventCreate>([](CUevent* event, unsigned flags) {
      if (flags != CU_EVENT_DISABLE_TIMING && launches->device_ms == 0) return CUDA_ERROR_NOT_SUPPORTED;
      static uint64_t next = 0x9000;
      *event = reinterpret_cast<CUevent>(next += 16);
      return CUDA_SUCCESS;
    });
    on<&cuEventElapsedTime>([](float* ms, CUevent, CUevent) {
      *ms = launches->device_ms;
      return CUDA_SUCCESS;
    });
    on<&cuEventRecord>([](CUevent event, CUstream stream) {
      std::lock_guard lock(launches->mutex);
      launches->events[event] = {stream, launches->streams[stream].size()};
      ++launches->recorded;
      return CUDA_SUCCESS;
    });
    // An event is complete when its stream is empty, which is enough for tests that run streams to their end.
    on<&cuEventQuery>([](CUevent event) {
      std::lock_guard lock(launches->mutex);
      return launches->streams[launches->events[event].first].empty() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
    });
    on<&cuStreamSynchronize>([](CUstream stream) {
      launches->run(stream);
      return CUDA_SUCCESS;
    });
    on<&cuCtxSynchronize>([] {
      for (auto& [stream, items] : launches->streams) launches->run(stream);
      return CUDA_SUCCESS;
    });
    on<&cuEventSynchronize>([](CUevent) { return driver<&cuCtxSynchronize>(); });
    on<&cuCtxSetCurrent>([](CUcontext context) {
      current_context = reinterpret_cast<uint64_t>(context);
      return CUDA_SUCCESS;
    });
    on<&cuCtxPushCurrent_v2>([](CUcontext context) { return driver<&cuCtxSetCurrent>(context); });
    on<&cuCtxPopCurrent_v2>([](CUcontext*) { return CUDA_SUCCESS; });
    on<&cuStreamDestroy_v2>([](CUstream) { return CUDA_SUCCESS; });
  }
  ~LaunchTest() override {
    this_thread = {nullptr, 0, this_thread.leaves};
    launches = nullptr;
  }

  static CUstream stream(uint64_t n) { return reinterpret_cast<CUstream>(n << 8); }
  static CUresult launch(CUstream on = nullptr, unsigned kernel = 1) {
    return cuLaunchKernel(reinterpret_cast<CUfunction>(uint64_t{kernel}), 1, 1, 1, 32, 1, 1, 0, on, nullptr,
                          nullptr);
  }

  LaunchWorld world_of_launches_;
};

// A slice on arbitrated devices, with a live agent.
class ArbitratedSlice : public Attached {
 public:
  explicit ArbitratedSlice(unsigned devices = 1) : Attached(devices) {
    heartbeat->monotonic_ns = UINT64_MAX;
    for (unsigned i = 0; i < devices; ++i) lease(UINT64_MAX, i);
  }
  ~ArbitratedSlice() { this_thread = {nullptr, 0, this_thread.leaves}; }
  void set(shm::GateState pass, uint64_t bound, unsigned device = 0, bool notify_on_idle = false) {
    control->devices[device].lease = shm::LeaseWord::of(pass, bound, notify_on_idle, ++number_).value;
  }
  void leave_uncontended() {
    control->devices[0].lease =
        shm::LeaseWord::of(shm::GateState::lease, UINT64_MAX, false, ++number_, true).value;
  }
  void lease(uint64_t bound, unsigned device = 0) { set(shm::GateState::lease, bound, device); }
  void close(unsigned device = 0) { set(shm::GateState::closed, 0, device); }

  shm::ProcessWork& work() { return *process->work; }
  // Returns the line of a thread, in the order of their first launches.
  shm::ThreadWork& line(unsigned thread = 0) { return work().thread[thread]; }

 private:
  uint32_t number_ = 0;
};

// Waits up to 10 s until the condition holds.
template <class Is>
bool soon(Is is) {
  for (int i = 0; i < 100'000; ++i) {
    if (is()) return true;
    const timespec t = {0, 100'000};
    nanosleep(&t, nullptr);
  }
  return is();
}

}  // namespace carve::guest
