// All entry points that start kernels, in all their versions. Graphs are in graphs.cc, copies in
// copies_linear.cc and copies_strided.cc. Each hook calls `paced`, which waits for the gate and then
// launches. If the device is not arbitrated, a launch costs three loads and the jump. For the cost under a
// lease see gate.h.
#include "guest/launch/gate.h"

using namespace carve::guest;

namespace {

// A launch takes one of three paths: `paced` if the device is not arbitrated, `arbitrated` for a known launch
// under a lease, and `out_of_line` for everything else. Each path has its own function, so that the first
// needs no stack frame. `What` builds a Launch from the arguments.
template <auto Entry, auto What, class... A>
__attribute__((noinline)) CUresult out_of_line(A... a) {
  return paced_by_waiting(What(a...), [=] { return driver<Entry>(a...); });
}

template <auto Entry, auto What, class... A>
__attribute__((noinline)) CUresult arbitrated(A... a) {
  return try_fast_launch(What(a...)) ? driver<Entry>(a...) : out_of_line<Entry, What>(a...);
}

template <auto Entry, auto What, class... A>
inline CUresult paced(A... a) {
  return is_not_arbitrated() ? driver<Entry>(a...) : arbitrated<Entry, What>(a...);
}

constexpr uint64_t both(uint64_t low, uint64_t high) { return low | high << 32; }

template <bool per_thread>
constexpr auto kernel = [](CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                           unsigned bz, unsigned, CUstream stream, auto...) {
  return Launch{reinterpret_cast<uint64_t>(f), both(gx, gy), gz, bx ^ uint64_t{by} << 16 ^ uint64_t{bz} << 32,
                named(stream, per_thread)};
};

template <bool per_thread>
constexpr auto configured = [](const CUlaunchConfig* c, CUfunction f, void**, void**) {
  if (c == nullptr) return Launch{};
  return kernel<per_thread>(f, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY,
                            c->blockDimZ, c->sharedMemBytes, c->hStream);
};

// The block size was set with cuFuncSetBlockShape.
constexpr auto grid = [](CUfunction f, int width, int height, CUstream stream = nullptr) {
  return Launch{reinterpret_cast<uint64_t>(f),
                both(static_cast<unsigned>(width), static_cast<unsigned>(height)), 1, 0, named(stream)};
};

constexpr auto single = [](CUfunction f) { return grid(f, 1, 1); };
constexpr auto plain_grid = [](CUfunction f, int width, int height) { return grid(f, width, height); };

// The launch is identified by the part on the first device. The driver starts all parts or none.
constexpr auto several = [](CUDA_LAUNCH_PARAMS* l, unsigned count, unsigned) {
  if (l == nullptr || count == 0) return Launch{};
  return kernel<false>(l->function, l->gridDimX, l->gridDimY, l->gridDimZ, l->blockDimX, l->blockDimY,
                       l->blockDimZ, l->sharedMemBytes, l->hStream);
};

}  // namespace

CUresult cuLaunch(CUfunction f) { return paced<&cuLaunch, single>(f); }

CUresult cuLaunchGrid(CUfunction f, int width, int height) {
  return paced<&cuLaunchGrid, plain_grid>(f, width, height);
}

CUresult cuLaunchGridAsync(CUfunction f, int width, int height, CUstream stream) {
  return paced<&cuLaunchGridAsync, grid>(f, width, height, stream);
}

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, CUstream stream, void** params, void** extra) {
  return paced<&cuLaunchKernel, kernel<false>>(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}

CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                             unsigned bz, unsigned shared, CUstream stream, void** params, void** extra) {
  return paced<&cuLaunchKernel_ptsz, kernel<true>>(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** params, void** extra) {
  return paced<&cuLaunchKernelEx, configured<false>>(config, f, params, extra);
}

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction f, void** params, void** extra) {
  return paced<&cuLaunchKernelEx_ptsz, configured<true>>(config, f, params, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                   unsigned by, unsigned bz, unsigned shared, CUstream stream,
                                   void** params) {
  return paced<&cuLaunchCooperativeKernel, kernel<false>>(f, gx, gy, gz, bx, by, bz, shared, stream, params);
}

CUresult cuLaunchCooperativeKernel_ptsz(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                        unsigned by, unsigned bz, unsigned shared, CUstream stream,
                                        void** params) {
  return paced<&cuLaunchCooperativeKernel_ptsz, kernel<true>>(f, gx, gy, gz, bx, by, bz, shared, stream,
                                                              params);
}

CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* launches, unsigned count, unsigned flags) {
  return paced<&cuLaunchCooperativeKernelMultiDevice, several>(launches, count, flags);
}
