// A program holds resources by value. Their content is stored in the padding that the interface reserves for
// the driver.
#include "sim/libcuda/green.h"

#include <algorithm>
#include <cstring>

#include "sim/libcuda/heap.h"

using namespace carve::sim;

struct CUdevResourceDesc_st {
  unsigned device;
  Partition part;
};

namespace carve::sim {

CUgreenCtx current_green() {
  Process& p = process();
  if (p.green_count.load(std::memory_order_acquire) == 0) return nullptr;
  const std::lock_guard lock(p.mutex);
  const auto found = p.faces.find(top_context());
  return found == p.faces.end() ? nullptr : found->second;
}

std::shared_ptr<CUctx_st> primary_of(CUgreenCtx green) {
  Process& p = process();
  const std::lock_guard lock(p.mutex);
  const auto known = [&](const auto& entry) { return entry.second == green; };
  return std::ranges::any_of(p.faces, known) ? green->primary : nullptr;
}

SmSplit split_multiprocessors(unsigned cc_major, unsigned all, unsigned wanted, bool each_alone) {
  const unsigned step = cc_major <= 6 ? 1 : cc_major <= 8 || each_alone ? 2 : 8;
  const unsigned least = cc_major <= 6 ? 1 : cc_major == 7 || each_alone ? 2 : cc_major == 8 ? 4 : 8;
  const unsigned size = (std::max(wanted, least) + step - 1) / step * step;
  return {size, all / size};
}

}  // namespace carve::sim

namespace {

struct Inside {
  uint32_t magic, device;
  Partition part;
};
constexpr uint32_t magic_number = 0x4d534743;

CUdevResource resource(unsigned device, Partition part) {
  CUdevResource r = {};
  const unsigned major = process().set.devices[device]->facts.cc_major;
  r.type = part.size ? CU_DEV_RESOURCE_TYPE_SM : CU_DEV_RESOURCE_TYPE_INVALID;
  const Inside inside = {magic_number, device, part};
  std::memcpy(r._internal_padding, &inside, sizeof inside);
  r.sm.smCount = part.size;
  r.sm.minSmPartitionSize = split_multiprocessors(major, part.size, 1, false).size;
  r.sm.smCoscheduledAlignment = major >= 9 ? 8 : major >= 7 ? 2 : 1;
  return r;
}

CUresult read(const CUdevResource* r, Inside* out) {
  if (!r) return CUDA_ERROR_INVALID_VALUE;
  if (r->type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  std::memcpy(out, r->_internal_padding, sizeof *out);
  if (out->magic != magic_number || out->device >= max_devices || !process().set.devices[out->device] ||
      out->part.size != r->sm.smCount)
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

CUresult give(CUdevResource* out, CUdevResourceType type, unsigned device, Partition part) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  *out = resource(device, part);
  return CUDA_SUCCESS;
}

Partition whole(unsigned device) {
  return {0, static_cast<uint16_t>(process().set.devices[device]->facts.multiprocessors)};
}

}  // namespace

EXPORT CUresult cuDeviceGetDevResource(CUdevice visible, CUdevResource* out, CUdevResourceType type) {
  unsigned device = 0;
  if (const CUresult e = device_of(visible, &device)) return e;
  return give(out, type, device, whole(device));
}
EXPORT CUresult cuCtxGetDevResource(CUcontext handle, CUdevResource* out, CUdevResourceType type) {
  if (const CUresult e = entered()) return e;
  const auto c = find_context(handle);
  if (!c) return CUDA_ERROR_INVALID_CONTEXT;
  const std::lock_guard lock(process().mutex);
  const auto face = process().faces.find(handle);
  return give(out, type, c->device, face == process().faces.end() ? whole(c->device) : face->second->part);
}
EXPORT CUresult cuGreenCtxGetDevResource(CUgreenCtx green, CUdevResource* out, CUdevResourceType type) {
  if (const CUresult e = entered()) return e;
  return primary_of(green) ? give(out, type, green->device, green->part) : CUDA_ERROR_INVALID_CONTEXT;
}

EXPORT CUresult cuDevSmResourceSplitByCount(CUdevResource* result, unsigned int* count,
                                            const CUdevResource* input, CUdevResource* remaining,
                                            unsigned int flags, unsigned int least) {
  Inside in;
  if (const CUresult e = entered()) return e;
  if (const CUresult e = read(input, &in)) return e;
  if (!count || flags > 3 || least > in.part.size) return CUDA_ERROR_INVALID_VALUE;
  const unsigned major = process().set.devices[in.device]->facts.cc_major;
  if ((flags & 2) && major < 9) return CUDA_ERROR_INVALID_VALUE;  // Clusters exist since that architecture.
  const SmSplit split = split_multiprocessors(major, in.part.size, least, flags & 1);
  if (split.groups == 0) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  *count = result ? std::min(*count, split.groups) : split.groups;
  Partition part = {in.part.first, static_cast<uint16_t>(split.size)};
  for (unsigned i = 0; result && i < *count; ++i, part.first += part.size)
    result[i] = resource(in.device, part);
  const unsigned used = *count * split.size;
  if (remaining)
    *remaining = resource(
        in.device, {static_cast<uint16_t>(in.part.first + used), static_cast<uint16_t>(in.part.size - used)});
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* out, CUdevResource* resources,
                                          unsigned int count) {
  if (const CUresult e = entered()) return e;
  if (!out || !resources || !count) return CUDA_ERROR_INVALID_VALUE;
  Inside first;
  if (const CUresult e = read(resources, &first)) return e;
  for (unsigned i = 1; i < count; ++i) {
    Inside next;
    if (const CUresult e = read(resources + i, &next)) return e;
    if (next.device != first.device) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    first.part.first = std::min(first.part.first, next.part.first);
    first.part.size = static_cast<uint16_t>(first.part.size + next.part.size);
  }
  if (first.part.size > whole(first.device).size) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  *out = new CUdevResourceDesc_st{first.device, first.part};  // The interface has no call to release it.
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGreenCtxCreate(CUgreenCtx* out, CUdevResourceDesc desc, CUdevice visible,
                                 unsigned int flags) {
  unsigned device = 0;
  if (const CUresult e = device_of(visible, &device)) return e;
  constexpr unsigned default_stream_flag = 1;  // CU_GREEN_CTX_DEFAULT_STREAM, required.
  if (!out || !desc || flags != default_stream_flag || desc->device != device)
    return CUDA_ERROR_INVALID_VALUE;
  CUcontext primary = nullptr;
  if (const CUresult e = cuDevicePrimaryCtxRetain(&primary, visible)) return e;
  auto* g = new CUgreenCtx_st;
  g->device = device;
  g->part = desc->part;
  g->primary = find_context(primary);
  g->face.device = device;
  g->face.id = g->primary->id;
  Process& p = process();
  const std::lock_guard lock(p.mutex);
  g->id = p.next_id.fetch_add(1);
  g->default_stream = {g->primary.get(), take_channel(*g->primary, false, g->part), 0, 0, 0, nullptr, g};
  p.faces[&g->face] = g;
  p.green_count.fetch_add(1);
  *out = g;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGreenCtxDestroy(CUgreenCtx green) {
  if (const CUresult e = entered()) return e;
  const auto c = primary_of(green);
  if (!c) return CUDA_ERROR_INVALID_CONTEXT;
  wait_channel(*c, green->default_stream.channel);
  {
    Process& p = process();
    const std::lock_guard lock(p.mutex);
    for (CUstream_st* s : p.streams)
      if (s->green == green) s->green = nullptr;  // Its channel stays in the partition as long as it exists.
    give_channel(*c, green->default_stream.channel);
    for (const auto& [thread, s] : green->thread_streams) give_channel(*c, s->channel);
    p.faces.erase(&green->face);
    p.green_count.fetch_sub(1);
  }
  const int visible = visible_of(green->device);
  delete green;
  return cuDevicePrimaryCtxRelease_v2(visible);
}

EXPORT CUresult cuCtxFromGreenCtx(CUcontext* out, CUgreenCtx green) {
  if (const CUresult e = entered()) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (!primary_of(green)) return CUDA_ERROR_INVALID_CONTEXT;
  *out = &green->face;
  return CUDA_SUCCESS;
}
EXPORT CUresult cuGreenCtxGetId(CUgreenCtx green, unsigned long long* out) {
  if (const CUresult e = entered()) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (!primary_of(green)) return CUDA_ERROR_INVALID_CONTEXT;
  *out = green->id;
  return CUDA_SUCCESS;
}
