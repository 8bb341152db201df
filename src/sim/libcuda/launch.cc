// Launches, in all forms of all CUDA versions. A launch is checked as in the real driver. Its duration and
// width are computed from the rules and the occupancy, and one operation is submitted to the stream's
// channel. If the channel's 1,024 entries are taken, the call blocks, as a full launch queue does.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "sim/libcuda/launch.h"

#include "sim/libcuda/capture.h"
#include "sim/libcuda/green.h"
#include "sim/libcuda/module_memory.h"

using namespace carve::sim;

namespace {

// Returns the address of argument n of a launch, or nullptr if there is none.
const char* place_of(const CUfunc_st& f, size_t n, void** parameters, void** extra) {
  const Parameter p = f.image.parameters[n];
  if (parameters) return static_cast<const char*>(parameters[n]);
  if (!extra) return nullptr;
  const char* buffer = nullptr;
  size_t bytes = 0;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = static_cast<const char*>(extra[1]);
    if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) bytes = *static_cast<const size_t*>(extra[1]);
  }
  return buffer && p.offset + p.bytes <= bytes ? buffer + p.offset : nullptr;
}

// Returns argument n as an unsigned integer, or 0 if there is none.
uint64_t argument(const CUfunc_st& f, int n, void** parameters, void** extra) {
  if (n < 0 || static_cast<size_t>(n) >= f.image.parameters.size()) return 0;
  const char* from = place_of(f, static_cast<size_t>(n), parameters, extra);
  uint64_t value = 0;
  if (from)
    std::memcpy(&value, from,
                std::min<size_t>(f.image.parameters[static_cast<size_t>(n)].bytes, sizeof value));
  return value;
}

uint64_t duration(const Facts& facts, const CUfunc_st& f, uint64_t waves, void** parameters, void** extra) {
  if (!f.ruled) return facts.launch_ns + waves * facts.wave_ns;
  double ns = f.rule.each_ns;
  if (f.rule.argument >= 0) ns *= static_cast<double>(argument(f, f.rule.argument, parameters, extra));
  return ns < 1e18 ? static_cast<uint64_t>(std::llround(ns)) : static_cast<uint64_t>(1e18);
}

}  // namespace

namespace carve::sim {

CUresult kernel_step(CUctx_st& c, const void* handle, const Shape& s, int stream_priority, void** parameters,
                     void** extra, Step* out) {
  const CUfunc_st* f = find_function(handle);
  if (!f) return CUDA_ERROR_INVALID_HANDLE;
  if (!f->module->library && f->module->context.lock().get() != &c) return CUDA_ERROR_INVALID_HANDLE;
  const Facts& facts = c.own_device().facts;
  constexpr unsigned max_grid[3] = {2147483647, 65535, 65535}, max_block[3] = {1024, 1024, 64};
  uint64_t blocks = 1, threads = 1;
  for (int i = 0; i < 3; ++i) {
    if (s.grid[i] == 0 || s.grid[i] > max_grid[i] || s.block[i] == 0 || s.block[i] > max_block[i])
      return CUDA_ERROR_INVALID_VALUE;
    blocks *= s.grid[i];
    threads *= s.block[i];
  }
  if (threads > 1024) return CUDA_ERROR_INVALID_VALUE;
  if (threads > f->image.max_threads) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  const auto allowed = f->attributes.find(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  const uint64_t most_shared = allowed != f->attributes.end()
                                   ? static_cast<uint64_t>(allowed->second) + f->image.static_shared
                                   : facts.shared_per_block;
  if (s.shared + uint64_t{f->image.static_shared} > most_shared) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t resident = resident_blocks(facts, *f, static_cast<unsigned>(threads), s.shared);
  if (resident == 0) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  const uint64_t wave = resident * facts.multiprocessors;
  if (s.cooperative && blocks > wave) return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  if (!parameters && !extra && !f->image.parameters.empty()) return CUDA_ERROR_INVALID_VALUE;
  if (f->module->library)
    if (const CUresult e = place_module(*f->module, c)) return e;

  Op& op = out->op;
  op.kind = OpKind::kernel;
  op.flags = s.cooperative ? op_cooperative : 0;
  op.width =
      static_cast<uint16_t>(std::min<uint64_t>((blocks + resident - 1) / resident, facts.multiprocessors));
  op.priority = static_cast<int16_t>(s.priority ? std::clamp(*s.priority, -5, 0) : stream_priority);
  op.duration_ns = duration(facts, *f, (blocks + wave - 1) / wave, parameters, extra);
  return CUDA_SUCCESS;
}

CUresult copy_arguments(const void* handle, void** parameters, void** extra, Arguments* out) {
  const CUfunc_st* f = find_function(handle);
  if (!f) return CUDA_ERROR_INVALID_HANDLE;
  if (!parameters && !extra && !f->image.parameters.empty()) return CUDA_ERROR_INVALID_VALUE;
  out->bytes.resize(f->image.parameter_bytes);
  for (size_t i = 0; i < f->image.parameters.size(); ++i) {
    const Parameter p = f->image.parameters[i];
    if (const char* from = place_of(*f, i, parameters, extra))
      std::memcpy(out->bytes.data() + p.offset, from, p.bytes);
    out->pointers.push_back(out->bytes.data() + p.offset);
  }
  return CUDA_SUCCESS;
}

}  // namespace carve::sim

namespace {

// Captures the launch as a node. The arguments are copied now, as for a launch.
CUresult capture_launch(CUstream_st& stream, const std::shared_ptr<CUctx_st>& c, const void* f,
                        const Shape& s, void** parameters, void** extra) {
  CUDA_KERNEL_NODE_PARAMS p = {};
  p.func = static_cast<CUfunction>(const_cast<void*>(f));
  p.gridDimX = s.grid[0], p.gridDimY = s.grid[1], p.gridDimZ = s.grid[2];
  p.blockDimX = s.block[0], p.blockDimY = s.block[1], p.blockDimZ = s.block[2];
  p.sharedMemBytes = s.shared;
  p.kernelParams = parameters;
  p.extra = extra;
  p.ctx = c.get();
  KernelNode node;
  if (const CUresult e = kernel_payload(p, &node)) return e;
  if (s.cooperative) node.attributes[CU_LAUNCH_ATTRIBUTE_COOPERATIVE].cooperative = 1;
  node.attributes[CU_LAUNCH_ATTRIBUTE_PRIORITY].priority = s.priority ? *s.priority : stream.priority;
  return capture(stream, c, std::move(node));
}

CUresult launch(const void* f, const Shape& s, CUstream handle, void** parameters, void** extra) {
  std::shared_ptr<CUctx_st> c;
  CUstream_st* stream = nullptr;
  if (const CUresult e = entered()) return e;
  if (!find_function(f)) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult e = stream_of(handle, &c, &stream)) return e;
  Step step;
  if (const CUresult e = kernel_step(*c, f, s, stream->priority, parameters, extra, &step)) return e;
  if (s.cooperative && stream->green && step.op.width > stream->green->part.size)
    return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  if (capturing(*stream)) return capture_launch(*stream, c, f, s, parameters, extra);
  return submit(*c, stream->channel, step.op, nullptr);
}

CUresult launch_config(const CUlaunchConfig* config, const void* f, void** parameters, void** extra,
                       bool own) {
  if (const CUresult e = entered()) return e;
  if (!config) return CUDA_ERROR_INVALID_VALUE;
  if (!find_function(f)) return CUDA_ERROR_INVALID_HANDLE;
  Shape s = {{config->gridDimX, config->gridDimY, config->gridDimZ},
             {config->blockDimX, config->blockDimY, config->blockDimZ},
             config->sharedMemBytes};
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const CUlaunchAttribute& a = config->attrs[i];
    if (a.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) s.cooperative = a.value.cooperative != 0;
    if (a.id == CU_LAUNCH_ATTRIBUTE_PRIORITY) s.priority = &a.value.priority;
  }
  return launch(f, s, own ? per_thread(config->hStream) : config->hStream, parameters, extra);
}

// The launch calls of CUDA 3 take their block shape and arguments from the function.
CUresult launch_old(CUfunction f, unsigned width, unsigned height, CUstream stream) {
  if (const CUresult e = has_context()) return e;
  if (!find_function(f)) return CUDA_ERROR_INVALID_HANDLE;
  size_t bytes = f->arguments.size();
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, f->arguments.data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  const Shape s = {{width, height, 1}, {f->block[0], f->block[1], f->block[2]}, f->shared};
  return launch(f, s, stream, nullptr, extra);
}

CUresult set_argument(CUfunction f, int offset, const void* value, unsigned bytes) {
  if (const CUresult e = entered()) return e;
  if (!find_function(f)) return CUDA_ERROR_INVALID_HANDLE;
  if (offset < 0 || offset > 4096 || bytes > 4096) return CUDA_ERROR_INVALID_VALUE;
  const size_t end = static_cast<size_t>(offset) + bytes;
  if (f->arguments.size() < end) f->arguments.resize(end);
  std::memcpy(f->arguments.data() + offset, value, bytes);
  return CUDA_SUCCESS;
}

CUresult multi_device(CUDA_LAUNCH_PARAMS* list, unsigned count, unsigned flags) {
  if (const CUresult e = entered()) return e;
  if (!list || !count || count > process().visible_count || flags > 3) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    const CUDA_LAUNCH_PARAMS& l = list[i];
    const Shape s = {{l.gridDimX, l.gridDimY, l.gridDimZ},
                     {l.blockDimX, l.blockDimY, l.blockDimZ},
                     l.sharedMemBytes,
                     true};
    if (const CUresult e = launch(l.function, s, l.hStream, l.kernelParams, nullptr)) return e;
  }
  return CUDA_SUCCESS;
}

}  // namespace

EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
                               unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
                               CUstream stream, void** parameters, void** extra) {
  return launch(f, {{gx, gy, gz}, {bx, by, bz}, shared}, stream, parameters, extra);
}
EXPORT CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
                                    unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
                                    CUstream stream, void** parameters, void** extra) {
  return launch(f, {{gx, gy, gz}, {bx, by, bz}, shared}, per_thread(stream), parameters, extra);
}
EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** parameters,
                                 void** extra) {
  return launch_config(config, f, parameters, extra, false);
}
EXPORT CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction f, void** parameters,
                                      void** extra) {
  return launch_config(config, f, parameters, extra, true);
}
EXPORT CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
                                          unsigned int bx, unsigned int by, unsigned int bz,
                                          unsigned int shared, CUstream stream, void** parameters) {
  return launch(f, {{gx, gy, gz}, {bx, by, bz}, shared, true}, stream, parameters, nullptr);
}
EXPORT CUresult cuLaunchCooperativeKernel_ptsz(CUfunction f, unsigned int gx, unsigned int gy,
                                               unsigned int gz, unsigned int bx, unsigned int by,
                                               unsigned int bz, unsigned int shared, CUstream stream,
                                               void** parameters) {
  return launch(f, {{gx, gy, gz}, {bx, by, bz}, shared, true}, per_thread(stream), parameters, nullptr);
}
EXPORT CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* list, unsigned int count,
                                                     unsigned int flags) {
  return multi_device(list, count, flags);
}

EXPORT CUresult cuFuncSetBlockShape(CUfunction f, int x, int y, int z) {
  if (const CUresult e = entered()) return e;
  if (!find_function(f)) return CUDA_ERROR_INVALID_HANDLE;
  if (x <= 0 || y <= 0 || z <= 0) return CUDA_ERROR_INVALID_VALUE;
  f->block[0] = static_cast<unsigned>(x);
  f->block[1] = static_cast<unsigned>(y);
  f->block[2] = static_cast<unsigned>(z);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuFuncSetSharedSize(CUfunction f, unsigned int bytes) {
  if (const CUresult e = entered()) return e;
  if (!find_function(f)) return CUDA_ERROR_INVALID_HANDLE;
  f->shared = bytes;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuParamSetSize(CUfunction f, unsigned int bytes) {
  if (const CUresult e = entered()) return e;
  if (!find_function(f)) return CUDA_ERROR_INVALID_HANDLE;
  if (bytes > 4096) return CUDA_ERROR_INVALID_VALUE;
  f->arguments.resize(bytes);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuParamSeti(CUfunction f, int offset, unsigned int value) {
  return set_argument(f, offset, &value, sizeof value);
}
EXPORT CUresult cuParamSetf(CUfunction f, int offset, float value) {
  return set_argument(f, offset, &value, sizeof value);
}
EXPORT CUresult cuParamSetv(CUfunction f, int offset, void* value, unsigned int bytes) {
  return value ? set_argument(f, offset, value, bytes) : CUDA_ERROR_INVALID_VALUE;
}
EXPORT CUresult cuLaunch(CUfunction f) { return launch_old(f, 1, 1, nullptr); }
EXPORT CUresult cuLaunchGrid(CUfunction f, int width, int height) {
  return launch_old(f, static_cast<unsigned>(width), static_cast<unsigned>(height), nullptr);
}
EXPORT CUresult cuLaunchGridAsync(CUfunction f, int width, int height, CUstream stream) {
  return launch_old(f, static_cast<unsigned>(width), static_cast<unsigned>(height), stream);
}
