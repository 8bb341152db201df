// Devices: the facts of the profile, as cuDeviceGet* returns them, peer access, and the process-wide versions
// and names.
#include <cstring>

#include "sim/drivers/drivers.h"
#include "sim/libcuda/driver_state.h"
#include "sim/libcuda/multicast.h"
#include "sim/model/memory.h"

using namespace carve::sim;

namespace {

struct ErrorName {
  int code;
  const char *name, *message;
};
constexpr ErrorName error_texts[] = {
#include "sim/libcuda/error_names.inc"
};

const ErrorName* find_error(CUresult e) {
  for (const ErrorName& known : error_texts)
    if (known.code == e) return &known;
  return nullptr;
}

// The one function above 70 lines: a switch over CUDA's enumeration, grouped by the source of the values. In
// numerical order, the attributes would be a table of 147 rows. NOLINTNEXTLINE(readability-function-size)
CUresult attribute(const Facts& f, int a, int* out) {
  switch (a) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: return *out = 1024, CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: return *out = 64, CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH: return *out = 2147483647, CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: return *out = 65535, CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      return *out = static_cast<int>(f.shared_per_block), CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      return *out = static_cast<int>(f.shared_per_block_optin), CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      return *out = static_cast<int>(f.shared_per_multiprocessor), CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
      return *out = static_cast<int>(f.shared_reserved_per_block), CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
      return *out = static_cast<int>(f.constant_bytes), CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
    case CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT: return *out = 32, CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
      return *out = static_cast<int>(f.registers_per_multiprocessor), CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: return *out = static_cast<int>(f.clock_khz), CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      return *out = static_cast<int>(f.memory_clock_khz), CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      return *out = static_cast<int>(f.memory_bus_bits), CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
    case CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT: return *out = 512, CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return *out = static_cast<int>(f.multiprocessors), CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      return *out = static_cast<int>(f.threads_per_multiprocessor), CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
      return *out = static_cast<int>(f.blocks_per_multiprocessor), CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: return *out = static_cast<int>(f.l2_bytes), CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: return *out = static_cast<int>(copy_engines), CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_ECC_ENABLED: return *out = static_cast<int>(f.ecc), CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: return *out = static_cast<int>(f.pci_bus), CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID: return *out = static_cast<int>(f.pci_device), CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID: return *out = static_cast<int>(f.pci_domain), CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID:
      return *out = static_cast<int>(f.pci_device_id << 16 | 0x10de), CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_GPU_PCI_SUBSYSTEM_ID:
      return *out = static_cast<int>(f.pci_subsystem_id), CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID: return *out = f.numa_node, CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_NUMA_ID: return *out = -1, CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED: return *out = supports_multicast(f), CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return *out = static_cast<int>(f.cc_major), CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return *out = static_cast<int>(f.cc_minor), CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO:
      return *out = f.cc_minor == 0 ? 2 : 32, CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID: return *out = static_cast<int>(f.index), CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR:
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
    case CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES:  // POSIX file descriptors.
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED: return *out = 1, CUDA_SUCCESS;
    default: break;
  }
  // Texture and surface limits: those of compute capability 7.0 and newer.
  constexpr struct {
    int first, last, value;
  } default_limits[] = {{21, 21, 131072}, {22, 23, 131072},  {23, 23, 65536},     {24, 26, 16384},
                        {27, 28, 32768},  {29, 29, 2048},    {42, 42, 32768},     {43, 43, 2048},
                        {45, 46, 32768},  {47, 48, 8192},    {49, 49, 32768},     {52, 53, 32768},
                        {54, 54, 2046},   {55, 55, 32768},   {56, 56, 131072},    {57, 57, 65536},
                        {58, 60, 16384},  {61, 61, 32768},   {62, 63, 32768},     {64, 64, 2048},
                        {65, 66, 32768},  {67, 67, 2046},    {69, 69, 268435456}, {70, 70, 131072},
                        {71, 71, 65000},  {72, 72, 2097120}, {73, 74, 32768},     {77, 77, 32768}};
  for (const auto& limit : default_limits)
    if (a >= limit.first && a <= limit.last) return *out = limit.value, CUDA_SUCCESS;
  if (a < 1 || a > 147) return CUDA_ERROR_INVALID_VALUE;
  return *out = 0, CUDA_SUCCESS;  // The feature is absent on this device.
}

const Facts* facts_of(CUdevice device, CUresult* e) {
  unsigned i = 0;
  *e = device_of(device, &i);
  return *e == CUDA_SUCCESS ? &process().set.devices[i]->facts : nullptr;
}

}  // namespace

EXPORT CUresult cuDriverGetVersion(int* version) {
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  *version = driver_of(carve_sim_driver).cuda_version;
  if (entered() == CUDA_SUCCESS) *version = process().set.file->cuda_version;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorName(CUresult error, const char** name) {
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  const ErrorName* e = find_error(error);
  *name = e ? e->name : nullptr;
  return e ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuGetErrorString(CUresult error, const char** message) {
  if (!message) return CUDA_ERROR_INVALID_VALUE;
  const ErrorName* e = find_error(error);
  *message = e ? e->message : nullptr;
  return e ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuDeviceGetCount(int* count) {
  if (const CUresult e = entered()) return e;
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<int>(process().visible_count);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (const CUresult e = entered()) return e;
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  if (ordinal < 0 || static_cast<unsigned>(ordinal) >= process().visible_count)
    return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  CUresult e;
  const Facts* f = facts_of(device, &e);
  if (!f) return e;
  if (!name || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  std::strncpy(name, f->name, static_cast<size_t>(length));
  name[length - 1] = 0;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  CUresult e;
  const Facts* f = facts_of(device, &e);
  if (!f) return e;
  if (!uuid) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(uuid->bytes, f->uuid, sizeof f->uuid);
  return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) { return cuDeviceGetUuid_v2(uuid, device); }

EXPORT CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  unsigned i = 0;
  if (const CUresult e = entered()) return e;
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  *bytes = 0;
  if (const CUresult e = device_of(device, &i)) return e;
  *bytes = total_bytes(*process().set.devices[i]);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute a, CUdevice device) {
  CUresult e;
  const Facts* f = facts_of(device, &e);
  if (!f) return e;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  return attribute(*f, a, value);
}

EXPORT CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  CUresult e;
  const Facts* f = facts_of(device, &e);
  if (!f) return e;
  if (!major || !minor) return CUDA_ERROR_INVALID_VALUE;
  *major = static_cast<int>(f->cc_major);
  *minor = static_cast<int>(f->cc_minor);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetProperties(CUdevprop* p, CUdevice device) {
  CUresult e;
  const Facts* f = facts_of(device, &e);
  if (!f) return e;
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  *p = {1024,
        {1024, 1024, 64},
        {2147483647, 65535, 65535},
        static_cast<int>(f->shared_per_block),
        static_cast<int>(f->constant_bytes),
        32,
        2147483647,
        static_cast<int>(f->registers_per_multiprocessor),
        static_cast<int>(f->clock_khz),
        512};
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetPCIBusId(char* id, int length, CUdevice device) {
  CUresult e;
  const Facts* f = facts_of(device, &e);
  if (!f) return e;
  if (!id || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  std::snprintf(id, static_cast<size_t>(length), "%04X:%02X:%02X.0", f->pci_domain, f->pci_bus,
                f->pci_device);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* id) {
  if (const CUresult e = entered()) return e;
  if (!device || !id) return CUDA_ERROR_INVALID_VALUE;
  unsigned domain = 0, bus = 0, slot = 0;
  if (std::sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3) {
    domain = 0;
    if (std::sscanf(id, "%x:%x", &bus, &slot) != 2) return CUDA_ERROR_INVALID_VALUE;
  }
  for (unsigned i = 0; i < process().visible_count; ++i) {
    const Facts& f = process().set.devices[process().visible[i]]->facts;
    if (f.pci_domain != domain || f.pci_bus != bus || f.pci_device != slot) continue;
    *device = static_cast<int>(i);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_DEVICE;
}

EXPORT CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  unsigned a = 0, b = 0;
  if (const CUresult e = device_of(device, &a)) return e;
  if (const CUresult e = device_of(peer, &b)) return e;
  if (!can) return CUDA_ERROR_INVALID_VALUE;
  *can = a != b && process().set.devices[a]->facts.link[b] != 0xff;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice device,
                                        CUdevice peer) {
  unsigned a = 0, b = 0;
  if (const CUresult e = device_of(device, &a)) return e;
  if (const CUresult e = device_of(peer, &b)) return e;
  if (!value || a == b) return CUDA_ERROR_INVALID_VALUE;
  const bool nvlink = process().set.devices[a]->facts.nvlink[b] != 0;
  switch (static_cast<int>(attribute)) {
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK: return *value = nvlink ? 0 : 1, CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED: return *value = 1, CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED: return *value = nvlink, CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED: return *value = 0, CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

EXPORT CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t* elements, CUarray_format, unsigned int channels,
                                                   CUdevice device) {
  unsigned i = 0;
  if (const CUresult e = device_of(device, &i)) return e;
  if (!elements || channels == 0 || channels > 4) return CUDA_ERROR_INVALID_VALUE;
  *elements = 1u << 28;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetExecAffinitySupport(int* value, CUexecAffinityType, CUdevice device) {
  unsigned i = 0;
  if (const CUresult e = device_of(device, &i)) return e;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  *value = 0;  // Non-zero only under MPS.
  return CUDA_SUCCESS;
}
