// Arrays and mipmapped arrays. An array's size depends on its tiling, which no argument of a call describes.
// The driver reports it (cuArrayGetMemoryRequirements) only for arrays whose memory is mapped later. So
// before an array is created, the hook creates its twin: the same description with
// CUDA_ARRAY3D_DEFERRED_MAPPING, which takes no memory. It reads the twin's bytes, destroys the twin and
// charges that amount: up to 1 MiB in steps of 64 KiB, above it in whole blocks of 2 MiB. These three driver
// calls add some microseconds to the milliseconds of a real allocation. If the driver refuses the twin, an
// upper bound is computed: rows padded to 512 bytes, heights and depths to powers of two.
//
// Sparse and deferred arrays take no memory themselves. Memory of cuMemCreate that is mapped into them
// (cuMemMapArrayAsync) stays charged until it is unmapped there or the array is destroyed (physical.h).
#include "guest/memory/physical.h"

using namespace carve;
using namespace carve::guest;

namespace {

constexpr unsigned takes_nothing = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING;

CUDA_ARRAY3D_DESCRIPTOR widened(const CUDA_ARRAY_DESCRIPTOR& d) {
  return {d.Width, d.Height, 0, d.Format, d.NumChannels, 0};
}
CUDA_ARRAY3D_DESCRIPTOR widened(const CUDA_ARRAY_DESCRIPTOR_v1& d) {
  return {d.Width, d.Height, 0, d.Format, d.NumChannels, 0};
}
CUDA_ARRAY3D_DESCRIPTOR widened(const CUDA_ARRAY3D_DESCRIPTOR_v1& d) {
  return {d.Width, d.Height, d.Depth, d.Format, d.NumChannels, d.Flags};
}
CUDA_ARRAY3D_DESCRIPTOR widened(const CUDA_ARRAY3D_DESCRIPTOR& d) { return d; }

Bytes in_steps(Bytes bytes) { return rounded_up(bytes, bytes <= 1_MiB ? 64_KiB : 2_MiB); }

// Multiplies with saturation, because a product of more than 64 bits is over any quota.
uint64_t times(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}
uint64_t to_power_of_two(uint64_t n) {
  return n <= 1 ? 1 : n > 1ull << 62 ? n : 1ull << (64 - __builtin_clzll(n - 1));
}

// Returns an upper bound of an array's bytes. No format has elements of more than 16 bytes, and a block of a
// compressed format has 16 bytes for 16 texels. The planes of a video format add less than 100 %. The levels
// of a mipmapped array add less than 100 %.
Bytes upper_bound(const CUDA_ARRAY3D_DESCRIPTOR& d, bool levels) {
  uint64_t element = 16;
  switch (d.Format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8: element = d.NumChannels; break;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF: element = 2 * d.NumChannels; break;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT: element = 4 * d.NumChannels; break;
    default: break;
  }
  const bool layered = (d.Flags & CUDA_ARRAY3D_LAYERED) != 0;
  const uint64_t row = rounded_up({times(d.Width, element)}, 512_B).count;
  const uint64_t height = d.Height == 0 ? 1 : to_power_of_two(d.Height);
  const uint64_t depth = d.Depth == 0 ? 1 : layered ? d.Depth : to_power_of_two(d.Depth);
  return {times(times(times(row, height), depth), levels ? 2 : 1)};
}

struct Array {
  static constexpr auto create = [](CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR& d, unsigned) {
    return driver<&cuArray3DCreate_v2>(out, &d);
  };
  static constexpr auto destroy = [](CUarray a) { return driver<&cuArrayDestroy>(a); };
  static constexpr auto ask = [](CUDA_ARRAY_MEMORY_REQUIREMENTS* r, CUarray a, CUdevice d) {
    return driver<&cuArrayGetMemoryRequirements>(r, a, d);
  };
};

struct Mipmap {
  static constexpr auto create = [](CUmipmappedArray* out, const CUDA_ARRAY3D_DESCRIPTOR& d,
                                    unsigned levels) {
    return driver<&cuMipmappedArrayCreate>(out, &d, levels);
  };
  static constexpr auto destroy = [](CUmipmappedArray a) { return driver<&cuMipmappedArrayDestroy>(a); };
  static constexpr auto ask = [](CUDA_ARRAY_MEMORY_REQUIREMENTS* r, CUmipmappedArray a, CUdevice d) {
    return driver<&cuMipmappedArrayGetMemoryRequirements>(r, a, d);
  };
};

// `levels` is 0 without a mipmap.
template <class Calls, class Handle>
Bytes size_of(CUDA_ARRAY3D_DESCRIPTOR description, unsigned levels, Handle) {
  const Bytes bound = in_steps(upper_bound(description, levels != 0));
  CUdevice device = 0;
  Handle twin = nullptr;
  description.Flags |= CUDA_ARRAY3D_DEFERRED_MAPPING;
  if (driver<&cuCtxGetDevice>(&device) != CUDA_SUCCESS ||
      Calls::create(&twin, description, levels) != CUDA_SUCCESS)
    return bound;
  CUDA_ARRAY_MEMORY_REQUIREMENTS needs = {};
  const CUresult result = Calls::ask(&needs, twin, device);
  Calls::destroy(twin);
  return result == CUDA_SUCCESS && needs.size != 0 ? in_steps({needs.size}) : bound;
}

template <class Calls, class Handle, class Description, class Create>
CUresult created(Handle* out, const Description* description, unsigned levels, Create create) {
  if (out == nullptr || description == nullptr || attached() == nullptr) {
    const Entered entered = enter();
    if (entered.refused) return CUDA_ERROR_SYSTEM_NOT_READY;
    if (out == nullptr || description == nullptr || entered.process == nullptr) return create();
  }
  const CUDA_ARRAY3D_DESCRIPTOR wide = widened(*description);
  const Bytes takes = (wide.Flags & takes_nothing) != 0 ? 0_B : size_of<Calls>(wide, levels, Handle{});
  return charged(
      takes, create, [=] { return takes; }, [=] { return reinterpret_cast<uint64_t>(*out); },
      [](uint64_t array) { Calls::destroy(reinterpret_cast<Handle>(array)); });
}

template <class Destroy>
CUresult destroyed(uint64_t array, Destroy destroy) {
  const CUresult result = released(array, destroy);
  if (Process* p = attached(); result == CUDA_SUCCESS && p != nullptr) unpin_all_of(*p, array);
  return result;
}

// Records the tiles that were mapped, by their position in the array. Tiles that are not unmapped in the same
// portions stay charged until the array is destroyed, which is longer than necessary but never too short.
void mapped(const CUarrayMapInfo* list, unsigned count) {
  Process* p = attached();
  if (p == nullptr || list == nullptr) return;
  for (unsigned i = 0; i < count; ++i) {
    const CUarrayMapInfo& info = list[i];
    const bool map = info.memOperationType == CU_MEM_OPERATION_TYPE_MAP;
    const uint64_t physical = map ? physical_of(*p, info.memHandle.memHandle) : 0;
    if (map && physical == 0) continue;
    const auto array = reinterpret_cast<uint64_t>(info.resource.array);
    const auto& level = info.subresource.sparseLevel;
    const auto& tail = info.subresource.miptail;
    uint64_t numbers[7] = {array, static_cast<uint64_t>(info.subresourceType)};
    if (info.subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL) {
      numbers[2] = tail.layer;
      numbers[3] = tail.offset;
    } else {
      numbers[2] = level.layer;
      numbers[3] = level.level;
      numbers[4] = level.offsetX;
      numbers[5] = level.offsetY;
      numbers[6] = level.offsetZ;
    }
    pin(*p, map_key_of(numbers, sizeof numbers), array, physical);
  }
}

}  // namespace

CUresult cuArrayCreate_v2(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* description) {
  return created<Array>(array, description, 0, [=] { return driver<&cuArrayCreate_v2>(array, description); });
}

CUresult cuArrayCreate(CUarray* array, const CUDA_ARRAY_DESCRIPTOR_v1* description) {
  return created<Array>(array, description, 0, [=] { return driver<&cuArrayCreate>(array, description); });
}

CUresult cuArray3DCreate_v2(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* description) {
  return created<Array>(array, description, 0,
                        [=] { return driver<&cuArray3DCreate_v2>(array, description); });
}

CUresult cuArray3DCreate(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR_v1* description) {
  return created<Array>(array, description, 0, [=] { return driver<&cuArray3DCreate>(array, description); });
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* description,
                                unsigned int levels) {
  return created<Mipmap>(array, description, levels,
                         [=] { return driver<&cuMipmappedArrayCreate>(array, description, levels); });
}

CUresult cuArrayDestroy(CUarray array) {
  return destroyed(reinterpret_cast<uint64_t>(array), [=] { return driver<&cuArrayDestroy>(array); });
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
  return destroyed(reinterpret_cast<uint64_t>(array),
                   [=] { return driver<&cuMipmappedArrayDestroy>(array); });
}

CUresult cuMemMapArrayAsync(CUarrayMapInfo* list, unsigned int count, CUstream stream) {
  const CUresult result = driver<&cuMemMapArrayAsync>(list, count, stream);
  if (result == CUDA_SUCCESS) mapped(list, count);
  return result;
}

CUresult cuMemMapArrayAsync_ptsz(CUarrayMapInfo* list, unsigned int count, CUstream stream) {
  const CUresult result = driver<&cuMemMapArrayAsync_ptsz>(list, count, stream);
  if (result == CUDA_SUCCESS) mapped(list, count);
  return result;
}
