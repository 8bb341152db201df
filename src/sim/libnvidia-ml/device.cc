// Properties of a device: names, bus address, clocks, limits, links. All come from the profile's facts.
#include <algorithm>
#include <cstdio>

#include "sim/libnvidia-ml/handles.h"

using namespace carve::sim;

namespace {

void fill_pci(const Facts& f, nvmlPciInfo_t* out, bool with_new_id) {
  out->domain = f.pci_domain;
  out->bus = f.pci_bus;
  out->device = f.pci_device;
  out->pciDeviceId = f.pci_device_id << 16 | 0x10de;
  std::snprintf(out->busIdLegacy, sizeof out->busIdLegacy, "%04X:%02X:%02X.0", f.pci_domain, f.pci_bus,
                f.pci_device);
  if (!with_new_id) return;  // The oldest structure ends before these fields.
  out->pciSubSystemId = f.pci_subsystem_id;
  std::snprintf(out->busId, sizeof out->busId, "%08X:%02X:%02X.0", f.pci_domain, f.pci_bus, f.pci_device);
}

nvmlReturn_t pci(nvmlDevice_t device, nvmlPciInfo_t* out, bool with_new_id) {
  Device* d = nullptr;
  if (const nvmlReturn_t e = find_device(device, &d)) return e;
  if (!out) return NVML_ERROR_INVALID_ARGUMENT;
  fill_pci(d->facts, out, with_new_id);
  return NVML_SUCCESS;
}

template <class Get>
nvmlReturn_t text(nvmlDevice_t device, char* out, unsigned length, Get get) {
  Device* d = nullptr;
  if (const nvmlReturn_t e = find_device(device, &d)) return e;
  return give_text(get(d->facts), out, length);
}

// Returns a clock domain's frequency in MHz, or 0 if the device does not have that domain.
unsigned clock_mhz(const Facts& f, nvmlClockType_t type) {
  switch (type) {
    case NVML_CLOCK_GRAPHICS:
    case NVML_CLOCK_SM: return f.clock_khz / 1000;
    case NVML_CLOCK_MEM: return f.memory_clock_khz / 1000;
    case NVML_CLOCK_VIDEO: return f.clock_khz / 1000 * 9 / 10;
    default: return 0;
  }
}

nvmlReturn_t clock(nvmlDevice_t device, nvmlClockType_t type, unsigned* out) {
  if (type > NVML_CLOCK_VIDEO) return NVML_ERROR_INVALID_ARGUMENT;
  return fact(device, out, [&](const Facts& f) { return clock_mhz(f, type); });
}

nvmlReturn_t one_clock(nvmlDevice_t device, unsigned* count, unsigned* clocks, nvmlClockType_t type) {
  Device* d = nullptr;
  if (const nvmlReturn_t e = find_device(device, &d)) return e;
  if (!count) return NVML_ERROR_INVALID_ARGUMENT;
  const bool fits = *count >= 1 && clocks;
  *count = 1;
  if (!fits) return NVML_ERROR_INSUFFICIENT_SIZE;
  clocks[0] = clock_mhz(d->facts, type);
  return NVML_SUCCESS;
}

// Returns the peer of link number n: the device whose range of links contains it.
int peer_of_link(const Facts& f, unsigned link) {
  for (unsigned peer = 0; peer < max_devices; ++peer) {
    if (link < f.nvlink[peer]) return static_cast<int>(peer);
    link -= f.nvlink[peer];
  }
  return -1;
}

nvmlReturn_t peer_link(nvmlDevice_t device, unsigned link, int* peer, Device** d) {
  if (const nvmlReturn_t e = find_device(device, d)) return e;
  if (link >= NVML_NVLINK_MAX_LINKS) return NVML_ERROR_INVALID_ARGUMENT;
  if (link >= (*d)->facts.nvlinks && peer_of_link((*d)->facts, link) < 0) return NVML_ERROR_NOT_SUPPORTED;
  *peer = peer_of_link((*d)->facts, link);
  return NVML_SUCCESS;
}

nvmlReturn_t off(nvmlDevice_t device, nvmlEnableState_t* out) {
  return fact(device, out, [](const Facts&) { return NVML_FEATURE_DISABLED; });
}

}  // namespace

#define TEXT(name, field)                                                         \
  EXPORT nvmlReturn_t name(nvmlDevice_t device, char* out, unsigned int length) { \
    return text(device, out, length, [](const Facts& f) { return f.field; });     \
  }
TEXT(nvmlDeviceGetName, name)
TEXT(nvmlDeviceGetSerial, serial)
TEXT(nvmlDeviceGetVbiosVersion, vbios)
#undef TEXT

EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* out, unsigned int length) {
  Device* d = nullptr;
  if (const nvmlReturn_t e = find_device(device, &d)) return e;
  char uuid[48];
  format_uuid(d->facts, uuid);
  return give_text(uuid, out, length);
}

// Defines a call that returns one of the facts, under its NVML name.
#define FACT(name, Out, value)                                                       \
  EXPORT nvmlReturn_t name(nvmlDevice_t device, Out* out) {                          \
    return fact(device, out, [](const Facts& f [[maybe_unused]]) { return value; }); \
  }
FACT(nvmlDeviceGetIndex, unsigned int, f.index)
FACT(nvmlDeviceGetMinorNumber, unsigned int, f.minor)
FACT(nvmlDeviceGetModuleId, unsigned int, f.index + 1)
FACT(nvmlDeviceGetBrand, nvmlBrandType_t, f.brand)
FACT(nvmlDeviceGetArchitecture, nvmlDeviceArchitecture_t, f.architecture)
FACT(nvmlDeviceGetBoardId, unsigned int, f.board_id)
FACT(nvmlDeviceGetMultiGpuBoard, unsigned int, 0)
FACT(nvmlDeviceGetBusType, nvmlBusType_t, NVML_BUS_TYPE_PCIE)
FACT(nvmlDeviceGetIrqNum, unsigned int, 100 + f.index)
FACT(nvmlDeviceGetNumGpuCores, unsigned int, f.multiprocessors* f.cores_per_multiprocessor)
FACT(nvmlDeviceGetMemoryBusWidth, unsigned int, f.memory_bus_bits)
FACT(nvmlDeviceGetNumaNodeId, unsigned int, f.numa_node)
FACT(nvmlDeviceGetMaxPcieLinkGeneration, unsigned int, f.pcie_generation)
FACT(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned int, f.pcie_generation)
FACT(nvmlDeviceGetCurrPcieLinkGeneration, unsigned int, f.pcie_generation)
FACT(nvmlDeviceGetMaxPcieLinkWidth, unsigned int, f.pcie_width)
FACT(nvmlDeviceGetCurrPcieLinkWidth, unsigned int, f.pcie_width)
FACT(nvmlDeviceGetPcieReplayCounter, unsigned int, 0)
FACT(nvmlDeviceGetPowerManagementLimit, unsigned int, f.power_limit_mw)
FACT(nvmlDeviceGetPowerManagementDefaultLimit, unsigned int, f.power_limit_mw)
FACT(nvmlDeviceGetEnforcedPowerLimit, unsigned int, f.power_limit_mw)
FACT(nvmlDeviceGetPowerManagementMode, nvmlEnableState_t, NVML_FEATURE_ENABLED)
FACT(nvmlDeviceGetPersistenceMode, nvmlEnableState_t, NVML_FEATURE_ENABLED)
FACT(nvmlDeviceGetComputeMode, nvmlComputeMode_t, NVML_COMPUTEMODE_DEFAULT)
FACT(nvmlDeviceGetMaxMigDeviceCount, unsigned int, 0)
FACT(nvmlDeviceIsMigDeviceHandle, unsigned int, 0)
FACT(nvmlDeviceGetVirtualizationMode, nvmlGpuVirtualizationMode_t, NVML_GPU_VIRTUALIZATION_MODE_NONE)
FACT(nvmlDeviceGetSupportedEventTypes, unsigned long long, nvmlEventTypeXidCriticalError)
FACT(nvmlDeviceGetSupportedClocksThrottleReasons, unsigned long long, nvmlClocksEventReasonGpuIdle)
FACT(nvmlDeviceGetSupportedClocksEventReasons, unsigned long long, nvmlClocksEventReasonGpuIdle)
#undef FACT

EXPORT nvmlReturn_t nvmlDeviceGetDisplayMode(nvmlDevice_t device, nvmlEnableState_t* out) {
  return off(device, out);
}
EXPORT nvmlReturn_t nvmlDeviceGetDisplayActive(nvmlDevice_t device, nvmlEnableState_t* out) {
  return off(device, out);
}
EXPORT nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device, nvmlEnableState_t* out) {
  return off(device, out);
}

EXPORT nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t device, char* out) {
  Device* d = nullptr;
  if (const nvmlReturn_t e = find_device(device, &d)) return e;
  return give_text(the_set().file->driver_version, out, 0x40);  // NVML_GSP_FIRMWARE_VERSION_BUF_SIZE
}
EXPORT nvmlReturn_t nvmlDeviceGetGspFirmwareMode(nvmlDevice_t device, unsigned int* on,
                                                 unsigned int* by_default) {
  const auto yes = [](const Facts&) { return 1; };
  if (const nvmlReturn_t e = fact(device, on, yes)) return e;
  return fact(device, by_default, yes);
}
// The speed of the PCIe generation in megatransfers per second: 2500, 5000, 8000, 16000, 32000 or 64000.
EXPORT nvmlReturn_t nvmlDeviceGetPcieSpeed(nvmlDevice_t device, unsigned int* out) {
  return fact(device, out, [](const Facts& f) {
    return f.pcie_generation < 3 ? 2500u << (f.pcie_generation - 1) : 8000u << (f.pcie_generation - 3);
  });
}
EXPORT nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t device, nvmlPerfPolicyType_t,
                                                 nvmlViolationTime_t* out) {
  return fact(device, out, [](const Facts&) {
    return nvmlViolationTime_t{now_ns() / 1000, 0};  // Never throttled.
  });
}

EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int* major, int* minor) {
  if (const nvmlReturn_t e = fact(device, major, [](const Facts& f) { return f.cc_major; })) return e;
  return fact(device, minor, [](const Facts& f) { return f.cc_minor; });
}

EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* out) {
  return pci(device, out, true);
}
EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t* out) {
  return pci(device, out, false);
}
EXPORT nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t* out) {
  return pci(device, out, false);
}
EXPORT nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_t* out) {
  Device* d = nullptr;
  if (const nvmlReturn_t e = find_device(device, &d)) return e;
  if (!out) return NVML_ERROR_INVALID_ARGUMENT;
  if (out->version != nvml_struct_version<nvmlPciInfoExt_v1_t>(1))
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  nvmlPciInfo_t old = {};
  fill_pci(d->facts, &old, true);
  out->domain = old.domain;
  out->bus = old.bus;
  out->device = old.device;
  out->pciDeviceId = old.pciDeviceId;
  out->pciSubSystemId = old.pciSubSystemId;
  out->baseClass = 3;  // Display controller,
  out->subClass = 2;   // 3D.
  std::memcpy(out->busId, old.busId, sizeof out->busId);
  return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int* now, unsigned int* pending) {
  Device* d = nullptr;
  if (const nvmlReturn_t e = find_device(device, &d)) return e;
  if (!now || !pending) return NVML_ERROR_INVALID_ARGUMENT;
  if (!d->faults.mig && (d->facts.cc_major < 8 || d->facts.cc_minor != 0)) return NVML_ERROR_NOT_SUPPORTED;
  *now = *pending = d->faults.mig ? NVML_DEVICE_MIG_ENABLE : NVML_DEVICE_MIG_DISABLE;
  return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned int* low,
                                                                 unsigned int* high) {
  if (const nvmlReturn_t e = fact(device, low, [](const Facts& f) { return f.power_limit_mw / 2; })) return e;
  return fact(device, high, [](const Facts& f) { return f.power_limit_mw; });
}

EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int* out) {
  return clock(device, type, out);
}
EXPORT nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int* out) {
  return clock(device, type, out);
}
EXPORT nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device, nvmlClockType_t type,
                                                   unsigned int* out) {
  return clock(device, type, out);
}
EXPORT nvmlReturn_t nvmlDeviceGetDefaultApplicationsClock(nvmlDevice_t device, nvmlClockType_t type,
                                                          unsigned int* out) {
  return clock(device, type, out);
}
EXPORT nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, nvmlClockType_t type, nvmlClockId_t,
                                       unsigned int* out) {
  return clock(device, type, out);
}
EXPORT nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned int* count,
                                                       unsigned int* out) {
  return one_clock(device, count, out, NVML_CLOCK_MEM);
}
EXPORT nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, unsigned int,
                                                         unsigned int* count, unsigned int* out) {
  return one_clock(device, count, out, NVML_CLOCK_GRAPHICS);
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, nvmlTemperatureThresholds_t which,
                                                      unsigned int* out) {
  switch (which) {
    case NVML_TEMPERATURE_THRESHOLD_SHUTDOWN: return fact(device, out, [](const Facts&) { return 98; });
    case NVML_TEMPERATURE_THRESHOLD_SLOWDOWN: return fact(device, out, [](const Facts&) { return 95; });
    case NVML_TEMPERATURE_THRESHOLD_GPU_MAX: return fact(device, out, [](const Facts&) { return 92; });
    default: return NVML_ERROR_NOT_SUPPORTED;
  }
}

EXPORT nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t* now,
                                         nvmlEnableState_t* pending) {
  const auto ecc = [](const Facts& f) { return f.ecc ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED; };
  if (const nvmlReturn_t e = fact(device, now, ecc)) return e;
  return fact(device, pending, ecc);
}
EXPORT nvmlReturn_t nvmlDeviceGetDefaultEccMode(nvmlDevice_t device, nvmlEnableState_t* out) {
  return fact(device, out,
              [](const Facts& f) { return f.ecc ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED; });
}
EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t,
                                                nvmlEccCounterType_t, unsigned long long* out) {
  return fact(device, out, [](const Facts&) { return 0; });
}
EXPORT nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, nvmlMemoryErrorType_t,
                                                    nvmlEccCounterType_t, nvmlMemoryLocation_t,
                                                    unsigned long long* out) {
  return fact(device, out, [](const Facts&) { return 0; });
}
EXPORT nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int* correctable,
                                              unsigned int* uncorrectable, unsigned int* pending,
                                              unsigned int* failed) {
  for (unsigned int* out : {correctable, uncorrectable, pending, failed})
    if (const nvmlReturn_t e = fact(device, out, [](const Facts&) { return 0; })) return e;
  return NVML_SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, nvmlPageRetirementCause_t,
                                              unsigned int* count, unsigned long long*) {
  return fact(device, count, [](const Facts&) { return 0; });
}

EXPORT nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t a, nvmlDevice_t b, int* out) {
  Device* other = nullptr;
  if (const nvmlReturn_t e = find_device(b, &other)) return e;
  return fact(a, out, [&](const Facts& f) { return f.board_id == other->facts.board_id; });
}

EXPORT nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t a, nvmlDevice_t b,
                                                        nvmlGpuTopologyLevel_t* out) {
  Device *x = nullptr, *y = nullptr;
  if (const nvmlReturn_t e = find_device(a, &x)) return e;
  if (const nvmlReturn_t e = find_device(b, &y)) return e;
  if (!out) return NVML_ERROR_INVALID_ARGUMENT;
  *out = x == y ? NVML_TOPOLOGY_INTERNAL : static_cast<nvmlGpuTopologyLevel_t>(x->facts.link[y->facts.index]);
  return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device, nvmlGpuTopologyLevel_t level,
                                                     unsigned int* count, nvmlDevice_t* out) {
  Device* d = nullptr;
  if (const nvmlReturn_t e = find_device(device, &d)) return e;
  if (!count) return NVML_ERROR_INVALID_ARGUMENT;
  unsigned found = 0;
  for (unsigned i = 0; i < the_set().count; ++i) {
    if (i == d->facts.index || d->facts.link[i] > level) continue;
    if (out && found < *count) out[found] = handle_of(i);
    ++found;
  }
  *count = out ? std::min(found, *count) : found;
  return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t a, nvmlDevice_t b, nvmlGpuP2PCapsIndex_t index,
                                           nvmlGpuP2PStatus_t* out) {
  Device *x = nullptr, *y = nullptr;
  if (const nvmlReturn_t e = find_device(a, &x)) return e;
  if (const nvmlReturn_t e = find_device(b, &y)) return e;
  if (!out) return NVML_ERROR_INVALID_ARGUMENT;
  const bool nvlink = x->facts.nvlink[y->facts.index] != 0;
  const bool needs_nvlink = index == NVML_P2P_CAPS_INDEX_NVLINK || index == NVML_P2P_CAPS_INDEX_ATOMICS;
  *out = needs_nvlink && !nvlink ? NVML_P2P_STATUS_NOT_SUPPORTED : NVML_P2P_STATUS_OK;
  return NVML_SUCCESS;
}

// Returns the processors of this machine's NUMA node whose number the profile assigns to the device.
EXPORT nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int size, unsigned long* set) {
  Device* d = nullptr;
  if (const nvmlReturn_t e = find_device(device, &d)) return e;
  if (!size || !set) return NVML_ERROR_INVALID_ARGUMENT;
  std::memset(set, 0, size * sizeof *set);
  char path[80], list[256] = "";
  std::snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", d->facts.numa_node);
  FILE* file = std::fopen(path, "re");
  if (!file) return NVML_ERROR_NOT_SUPPORTED;
  const bool read = std::fgets(list, sizeof list, file) != nullptr;
  std::fclose(file);
  for (char* at = list; read && *at && *at != '\n';) {
    char* end = nullptr;
    const unsigned long first = std::strtoul(at, &end, 10);
    const unsigned long last = *end == '-' ? std::strtoul(end + 1, &end, 10) : first;
    for (unsigned long cpu = first; cpu <= last && cpu < size * 64ul; ++cpu) set[cpu / 64] |= 1ul << cpu % 64;
    at = *end == ',' ? end + 1 : end;
    if (end == at && *at != ',') break;
  }
  return NVML_SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t device, unsigned int size,
                                                        unsigned long* set, nvmlAffinityScope_t) {
  return nvmlDeviceGetCpuAffinity(device, size, set);
}
EXPORT nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int size, unsigned long* set,
                                                nvmlAffinityScope_t) {
  Device* d = nullptr;
  if (const nvmlReturn_t e = find_device(device, &d)) return e;
  if (!size || !set) return NVML_ERROR_INVALID_ARGUMENT;
  std::memset(set, 0, size * sizeof *set);
  if (d->facts.numa_node >= 0 && static_cast<unsigned>(d->facts.numa_node) < size * 64)
    set[d->facts.numa_node / 64] |= 1ul << d->facts.numa_node % 64;
  return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, nvmlEnableState_t* out) {
  int peer = -1;
  Device* d = nullptr;
  if (const nvmlReturn_t e = peer_link(device, link, &peer, &d)) return e;
  if (!out) return NVML_ERROR_INVALID_ARGUMENT;
  *out = peer >= 0 ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
  return NVML_SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned int link, unsigned int* out) {
  int peer = -1;
  Device* d = nullptr;
  if (const nvmlReturn_t e = peer_link(device, link, &peer, &d)) return e;
  if (!out) return NVML_ERROR_INVALID_ARGUMENT;
  *out = d->facts.cc_major >= 9 ? 4 : d->facts.cc_major >= 8 ? 3 : 2;
  return NVML_SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link,
                                                        nvmlPciInfo_t* out) {
  int peer = -1;
  Device* d = nullptr;
  if (const nvmlReturn_t e = peer_link(device, link, &peer, &d)) return e;
  if (!out) return NVML_ERROR_INVALID_ARGUMENT;
  if (peer < 0) return NVML_ERROR_NOT_SUPPORTED;
  fill_pci(the_set().devices[peer]->facts, out, true);
  return NVML_SUCCESS;
}
