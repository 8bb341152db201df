// Everything that starts work on the device, in all forms that there ever were (graphs: graphs.cc). One verb,
// `paced`: wait for the gate, go. With the gate open a launch costs two loads and the jump.
#include <time.h>

#include "tenant/cuda/device.h"
#include "tenant/cuda/gate.h"

namespace carve::tenant {

__attribute__((noinline)) void wait_at_gate() {
  Process* p = attached();
  if (p == nullptr) return;
  const Current where = current(*p);
  if (where.result != CUDA_SUCCESS || where.device >= p->device_count) return;  // The driver will refuse.
  const shm::ControlDevice& device = p->control->devices[where.device];
  for (;;) {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const uint64_t now = static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
    if (may_launch(is_open(device), now, p->heartbeat->monotonic_ns.load(std::memory_order_relaxed),
                   device.fallback_period, device.fallback_offset, device.fallback_length))
      return;
    const timespec nap = {0, 50'000};
    nanosleep(&nap, nullptr);
  }
}

namespace {

// Apart from `paced`, so that the open gate needs no stack frame.
template <auto Entry, class... A>
__attribute__((noinline)) CUresult paced_by_waiting(A... a) {
  wait_at_gate();
  return driver<Entry>(a...);
}

template <auto Entry, class... A>
inline CUresult paced(A... a) {
  return gates_open() ? driver<Entry>(a...) : paced_by_waiting<Entry>(a...);
}

}  // namespace
}  // namespace carve::tenant

using namespace carve::tenant;

CUresult cuLaunch(CUfunction f) { return paced<&cuLaunch>(f); }

CUresult cuLaunchGrid(CUfunction f, int width, int height) { return paced<&cuLaunchGrid>(f, width, height); }

CUresult cuLaunchGridAsync(CUfunction f, int width, int height, CUstream stream) {
  return paced<&cuLaunchGridAsync>(f, width, height, stream);
}

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, CUstream stream, void** params, void** extra) {
  return paced<&cuLaunchKernel>(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}

CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                             unsigned bz, unsigned shared, CUstream stream, void** params, void** extra) {
  return paced<&cuLaunchKernel_ptsz>(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** params, void** extra) {
  return paced<&cuLaunchKernelEx>(config, f, params, extra);
}

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction f, void** params, void** extra) {
  return paced<&cuLaunchKernelEx_ptsz>(config, f, params, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                   unsigned by, unsigned bz, unsigned shared, CUstream stream,
                                   void** params) {
  return paced<&cuLaunchCooperativeKernel>(f, gx, gy, gz, bx, by, bz, shared, stream, params);
}

CUresult cuLaunchCooperativeKernel_ptsz(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                        unsigned by, unsigned bz, unsigned shared, CUstream stream,
                                        void** params) {
  return paced<&cuLaunchCooperativeKernel_ptsz>(f, gx, gy, gz, bx, by, bz, shared, stream, params);
}

CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* launches, unsigned count, unsigned flags) {
  return paced<&cuLaunchCooperativeKernelMultiDevice>(launches, count, flags);
}
