// For unit tests: makes this process an attached slice whose pages are in ordinary memory, with a driver that
// consists of lambdas in the slots. The small driver below returns and counts pointers and contexts.
#pragma once

#include <gtest/gtest.h>
#include <string.h>
#include <sys/mman.h>

#include <atomic>
#include <map>
#include <mutex>

#include "guest/linkage/hook.h"
#include "guest/quota/charge.h"

namespace carve::guest {

inline constexpr uint64_t MiB = 1 << 20;

// Sets the slot of one entry: on<&cuMemAlloc_v2>([](CUdeviceptr* p, size_t n) { ... }).
template <auto Entry, class F>
void on(F f) {
  Driver<Entry>::slot = +f;
}

class Attached {
 public:
  explicit Attached(unsigned devices = 1, uint64_t quota = 10 << 20, uint64_t context = 0) {
    control->magic = shm::control_magic;
    control->layout = shm::layout_version;
    control->device_count = devices;
    for (unsigned i = 0; i < devices; ++i) {
      control->devices[i].uuid[0] = static_cast<uint8_t>(i + 1);
      control->devices[i].quota = quota;
      control->devices[i].context_bytes = context;
      control->devices[i].fence_interval_ns = 200'000;
      control->devices[i].memory = shm::Memory::limited;
      process->hint[i] = UINT64_MAX;
    }
    process->control = control;
    process->report = report;
    process->work = &report->work.process[3];
    process->heartbeat = heartbeat;
    process->slot = 3;
    process->device_count = devices;
    process->attach_state = AttachState::attached;
    process_page = process;
    gates.first = control->devices;
    gates.count = devices;
  }
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;
  ~Attached() {
    process_page = nullptr;
    gates.count = 0;
    munmap(control, sizeof *control);
    munmap(report, sizeof *report);
    munmap(process, sizeof *process);
    munmap(heartbeat, sizeof *heartbeat);
  }

  uint64_t used(unsigned device = 0) const { return shm::in_use(report->charges, device).bytes; }

  shm::Control* control = pages<shm::Control>();
  shm::Report* report = pages<shm::Report>();
  shm::Heartbeat* heartbeat = pages<shm::Heartbeat>();
  Process* process = pages<Process>();

 private:
  template <class T>
  static T* pages() {
    void* p = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return static_cast<T*>(p);
  }
};

// The state that the lambdas share. One device per ordinal, whose UUID begins with the ordinal plus one; the
// current device is per thread.
struct World {
  std::mutex mutex;
  std::map<CUdeviceptr, uint64_t> live;
  uint64_t next = 0x7000'0000'0000;
  uint64_t total = 64 << 20;
  int primary_uses = 0;
  int contexts = 0;
  CUresult next_result = CUDA_SUCCESS;

  uint64_t bytes() {
    uint64_t sum = 0;
    for (const auto& [pointer, bytes] : live) sum += bytes;
    return sum;
  }
};
inline World* world = nullptr;
inline thread_local CUdevice current_device = 0;
inline thread_local uint64_t current_context = 0x1000;

inline CUresult take_result() {
  const CUresult r = world->next_result;
  world->next_result = CUDA_SUCCESS;
  return r;
}

inline CUresult driver_allocate(CUdeviceptr* pointer, size_t bytes) {
  std::lock_guard lock(world->mutex);
  if (const CUresult r = take_result(); r != CUDA_SUCCESS) return r;
  if (bytes == 0 || pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pointer = world->next;
  world->next += (bytes + 511) & ~511ull;
  world->live[*pointer] = bytes;
  return CUDA_SUCCESS;
}

inline CUresult driver_free(CUdeviceptr pointer) {
  std::lock_guard lock(world->mutex);
  if (const CUresult r = take_result(); r != CUDA_SUCCESS) return r;
  if (pointer == 0) return CUDA_SUCCESS;
  return world->live.erase(pointer) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

class DriverTest : public testing::Test {
 protected:
  DriverTest() {
    world = &world_;
    on<&cuMemAlloc_v2>([](CUdeviceptr* p, size_t n) { return driver_allocate(p, n); });
    on<&cuMemAllocManaged>([](CUdeviceptr* p, size_t n, unsigned) { return driver_allocate(p, n); });
    on<&cuMemAllocPitch_v2>([](CUdeviceptr* p, size_t* pitch, size_t w, size_t h, unsigned) {
      *pitch = (w + 511) / 512 * 512;
      return driver_allocate(p, *pitch * h);
    });
    on<&cuMemFree_v2>([](CUdeviceptr p) { return driver_free(p); });
    on<&cuMemFreeAsync>([](CUdeviceptr p, CUstream) { return driver_free(p); });
    on<&cuMemGetInfo_v2>([](size_t* f, size_t* t) {
      *f = world->total - world->bytes();
      *t = world->total;
      return take_result();
    });
    on<&cuDeviceTotalMem_v2>([](size_t* t, CUdevice) {
      *t = world->total;
      return CUDA_SUCCESS;
    });
    on<&cuDeviceGetCount>([](int* count) {
      *count = 10;
      return CUDA_SUCCESS;
    });
    on<&cuDeviceGet>([](CUdevice* d, int ordinal) {
      *d = ordinal;
      return ordinal >= 0 && ordinal < 10 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    });
    on<&cuCtxGetDevice>([](CUdevice* d) {
      *d = current_device;
      return CUDA_SUCCESS;
    });
    on<&cuCtxGetCurrent>([](CUcontext* c) {
      *c = reinterpret_cast<CUcontext>(current_context);
      return CUDA_SUCCESS;
    });
    on<&cuDeviceGetUuid>([](CUuuid* uuid, CUdevice d) {
      if (d < 0 || d > 9) return CUDA_ERROR_INVALID_DEVICE;
      memset(uuid, 0, sizeof *uuid);
      uuid->bytes[0] = static_cast<char>(d + 1);
      return CUDA_SUCCESS;
    });
  }
  ~DriverTest() override {
    world = nullptr;
    current_device = 0;
    current_context = 0x1000;
  }
  World world_;
};

}  // namespace carve::guest
