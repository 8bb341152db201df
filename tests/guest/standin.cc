// A minimal libcuda.so.1 that takes 3 ns per call. It is used for measurements for which the simulated driver
// is too slow, such as the cost of a hook, and for exact counts. STANDIN_USAGE names a file with two words
// that all processes share: the currently allocated bytes and their maximum. Sizes are rounded as by
// cuMemAlloc, and each primary context has STANDIN_CONTEXT bytes. There are two devices, whose UUIDs are
// sixteen bytes of 1 and of 2.
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "abi/cuda.h"

#pragma GCC visibility push(default)

namespace {

struct UsageRecord {
  std::atomic<uint64_t> now, most;
};
UsageRecord own;
UsageRecord* usage = &own;
uint64_t context_bytes = 0;
std::atomic<uint64_t> next{0x7000'0000'0000};
std::atomic<int> primary_uses[2];
__thread CUcontext context;
__thread CUdeviceptr last_freed;  // Reused first, as by real drivers.
constexpr uint64_t total = 40ull << 30;

// Sizes of live allocations, indexed by the pointer's offset in an arena with steps of 512 bytes; enough to
// free an allocation.
constexpr uint64_t arena = 1 << 22;
std::atomic<uint64_t> sizes[arena];
std::atomic<uint64_t>& size_of(CUdeviceptr p) { return sizes[(p - 0x7000'0000'0000) / 512 % arena]; }

uint64_t rounded(uint64_t n) {
  return n <= 1 << 20 ? (n + 511) & ~511ull : (n + (2 << 20) - 1) & ~((2ull << 20) - 1);
}

void count(uint64_t bytes) {
  const uint64_t now = usage->now += bytes;
  uint64_t most = usage->most;
  while (now > most && !usage->most.compare_exchange_weak(most, now)) {}
}

CUresult allocate(CUdeviceptr* p, size_t bytes) {
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (bytes == 0 || p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *p = last_freed != 0 ? last_freed : next.fetch_add(512, std::memory_order_relaxed);
  last_freed = 0;
  size_of(*p).store(rounded(bytes), std::memory_order_relaxed);
  if (usage != &own) count(rounded(bytes));
  return CUDA_SUCCESS;
}

CUresult release(CUdeviceptr p) {
  if (p == 0) return CUDA_SUCCESS;
  const uint64_t bytes = size_of(p).load(std::memory_order_relaxed);
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  size_of(p).store(0, std::memory_order_relaxed);
  last_freed = p;
  if (usage != &own) usage->now -= bytes;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuInit(unsigned) {
  const char* path = getenv("STANDIN_USAGE");
  if (path == nullptr || usage != &own) return CUDA_SUCCESS;
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  void* p = mmap(nullptr, sizeof(UsageRecord), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (p == MAP_FAILED) return CUDA_ERROR_UNKNOWN;
  if (const char* bytes = getenv("STANDIN_CONTEXT")) context_bytes = strtoull(bytes, nullptr, 10);
  usage = static_cast<UsageRecord*>(p);
  return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int* version) {
  *version = 13000;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* n) {
  *n = 2;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* d, int ordinal) {
  *d = ordinal;
  return ordinal < 2 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice d) {
  if (d < 0 || d > 1) return CUDA_ERROR_INVALID_DEVICE;
  memset(uuid->bytes, d + 1, sizeof uuid->bytes);
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice) {
  *bytes = total;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* c, CUdevice d) {
  if (primary_uses[d]++ == 0) count(context_bytes);
  *c = reinterpret_cast<CUcontext>(static_cast<uint64_t>(d + 1) << 12);
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice d) {
  if (primary_uses[d] == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--primary_uses[d] == 0) usage->now -= context_bytes;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxGetState(CUdevice d, unsigned* flags, int* active) {
  *flags = 0;
  *active = primary_uses[d] > 0;
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext c) {
  context = c;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* c) {
  *c = context;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* d) {
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *d = static_cast<int>(reinterpret_cast<uint64_t>(context) >> 12) - 1;
  return CUDA_SUCCESS;
}
CUresult cuMemAlloc_v2(CUdeviceptr* p, size_t bytes) { return allocate(p, bytes); }
CUresult cuMemFree_v2(CUdeviceptr p) { return release(p); }
CUresult cuMemAllocManaged(CUdeviceptr* p, size_t bytes, unsigned) { return allocate(p, bytes); }
CUresult cuMemAdvise(CUdeviceptr, size_t, CUmem_advise, CUdevice) { return CUDA_SUCCESS; }
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute, CUdevice) {
  *value = 1;
  return CUDA_SUCCESS;
}
CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr p) {
  memset(handle, 0, sizeof *handle);
  memcpy(handle, &p, sizeof p);
  return CUDA_SUCCESS;
}
CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* all) {
  *all = total;
  *free_bytes = total - usage->now.load(std::memory_order_relaxed);
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        CUstream, void**, void**) {
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernelEx(const CUlaunchConfig*, CUfunction, void**, void**) { return CUDA_SUCCESS; }
// The streams of this driver are always complete.
CUresult cuStreamIsCapturing(CUstream, CUstreamCaptureStatus* status) {
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
CUresult cuStreamWriteValue64_v2(CUstream, CUdeviceptr at, cuuint64_t value, unsigned) {
  reinterpret_cast<std::atomic<uint64_t>*>(at)->store(value, std::memory_order_release);
  return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream) { return CUDA_SUCCESS; }
CUresult cuMemHostRegister_v2(void*, size_t, unsigned) { return CUDA_SUCCESS; }
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* out, void* at, unsigned) {
  *out = reinterpret_cast<CUdeviceptr>(at);
  return CUDA_SUCCESS;
}
CUresult cuGetProcAddress_v2(const char* name, void** out, int, cuuint64_t, CUdriverProcAddressQueryResult*) {
  *out = nullptr;
  if (strcmp(name, "cuMemAlloc") == 0) *out = reinterpret_cast<void*>(&cuMemAlloc_v2);
  if (strcmp(name, "cuDeviceGetAttribute") == 0) *out = reinterpret_cast<void*>(&cuDeviceGetAttribute);
  return *out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

// Returns this library's own entries, whatever is preloaded above it (it is linked with -Bsymbolic).
extern "C" void* standin_native(const char* name) {
  static const struct {
    const char* name;
    void* entry;
  } entries[] = {
      {"cuMemAlloc_v2", reinterpret_cast<void*>(&cuMemAlloc_v2)},
      {"cuMemFree_v2", reinterpret_cast<void*>(&cuMemFree_v2)},
      {"cuMemGetInfo_v2", reinterpret_cast<void*>(&cuMemGetInfo_v2)},
      {"cuLaunchKernel", reinterpret_cast<void*>(&cuLaunchKernel)},
      {"cuLaunchKernelEx", reinterpret_cast<void*>(&cuLaunchKernelEx)},
      {"cuStreamSynchronize", reinterpret_cast<void*>(&cuStreamSynchronize)},
      {"cuGetProcAddress_v2", reinterpret_cast<void*>(&cuGetProcAddress_v2)},
  };
  for (const auto& e : entries)
    if (strcmp(e.name, name) == 0) return e.entry;
  return nullptr;
}

#pragma GCC visibility pop
