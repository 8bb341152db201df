// Activity of a device: memory, processes, utilisation, temperature, events. All values come from the model,
// which is brought up to date and swept of dead clients first.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <new>
#include <vector>

#include "sim/libnvidia-ml/handles.h"

using namespace carve::sim;

namespace {

struct Usage {
  int pid;
  uint64_t bytes;
};

// Returns one row per process that is visible from this pid namespace.
std::vector<Usage> processes(Device& d, unsigned index, uint64_t now) {
  const Locked lock(d,
                    lock_timeout);  // Without the lock the amounts are right too, because each is one word.
  if (lock.held()) sweep(the_set(), index, now, true);
  std::vector<Usage> rows;
  const auto add = [&](int pid, uint64_t bytes) {
    const auto same = std::ranges::find(rows, pid, &Usage::pid);
    if (same == rows.end())
      rows.push_back({pid, bytes});
    else
      same->bytes += bytes;
  };
  for (unsigned i = 0; i < max_contexts; ++i) {
    const Context& c = d.contexts[i];
    int pid = 0;
    if (!c.in_use || !alive(the_set(), c.client, c.client_generation, &pid) || pid == 0) continue;
    const uint64_t unlisted =
        d.facts.unlisted_bytes + (d.facts.managed_step_bytes != 0 ? c.managed_bytes : 0);
    add(pid, held_bytes(c) - std::min(held_bytes(c), unlisted));
  }
  for (uint32_t client = 0; client < max_clients; ++client) {
    const Holding& h = d.holdings[client];
    int pid = 0;
    if (h.bytes && alive(the_set(), client, h.generation, &pid) && pid) add(pid, h.bytes);
  }
  for (unsigned i = 0; i < d.segment_end; ++i) {
    const Segment& s = d.segments[i];
    int pid = 0;
    if (s.serial && s.bytes && segment_owner(the_set(), s, &pid) && pid) add(pid, s.bytes);
  }
  return rows;
}

// The versions of the process list differ only in the size of a row.
template <class Row>
nvmlReturn_t list_processes(nvmlDevice_t device, unsigned* count, Row* out) {
  Device* d = nullptr;
  if (const nvmlReturn_t e = find_device(device, &d)) return e;
  if (!count) return NVML_ERROR_INVALID_ARGUMENT;
  const std::vector<Usage> rows = processes(*d, device->index, now_ns());
  const unsigned room = *count;
  *count = static_cast<unsigned>(rows.size());
  if (rows.size() > room) return NVML_ERROR_INSUFFICIENT_SIZE;
  if (!rows.empty() && !out) return NVML_ERROR_INVALID_ARGUMENT;
  for (size_t i = 0; i < rows.size(); ++i) {
    out[i] = {};
    out[i].pid = static_cast<unsigned>(rows[i].pid);
    out[i].usedGpuMemory = rows[i].bytes;
    if constexpr (sizeof(Row) > 16) out[i].gpuInstanceId = out[i].computeInstanceId = 0xffffffff;
  }
  return NVML_SUCCESS;
}

// Returns the free memory. It is a sum of words that are each valid without the lock, so a stopped client
// cannot block the call.
nvmlReturn_t free_memory(nvmlDevice_t device, const void* out, const Facts** facts, uint64_t* free) {
  Device* d = nullptr;
  if (const nvmlReturn_t e = find_device(device, &d)) return e;
  if (!out) return NVML_ERROR_INVALID_ARGUMENT;
  const Locked lock(*d, lock_timeout);
  if (lock.held()) sweep(the_set(), device->index, now_ns());
  *facts = &d->facts;
  *free = free_bytes(*d);
  return NVML_SUCCESS;
}

nvmlReturn_t no_processes(nvmlDevice_t device, unsigned* count) {
  return fact(device, count, [](const Facts&) { return 0; });
}

// Returns the clients of an MPS server, which are all processes of the device if it has such a server.
template <class Row>
nvmlReturn_t list_mps_clients(nvmlDevice_t device, unsigned* count, Row* out) {
  Device* d = nullptr;
  if (const nvmlReturn_t e = find_device(device, &d)) return e;
  return d->faults.mps ? list_processes(device, count, out) : no_processes(device, count);
}

uint64_t utc_us() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000 + static_cast<uint64_t>(t.tv_nsec) / 1000;
}

struct Work {
  unsigned pid;
  uint64_t stamp_us;  // CLOCK_REALTIME
  unsigned percent;
};

// Returns a sample for each live process that was recorded after `since_us`. A sample has the time of the
// process's last record, and the sum of its percentages divided by the number of periods since `since_us`.
std::vector<Work> work_since(Device& d, unsigned index, uint64_t since_us) {
  static const uint64_t utc_offset_us = utc_us() - now_ns() / 1000;  // Computed once, so stamps never shift.
  std::vector<Work> rows;
  const Locked lock(d, lock_timeout);
  if (lock.held()) {
    sweep(the_set(), index, now_ns());
    advance(d, now_ns());
  }
  const uint64_t count = d.work.count;
  unsigned periods = 0;
  for (uint64_t n = count - std::min<uint64_t>(count, max_work_samples); n < count; ++n) {
    const WorkSample& sample = d.work.samples[n % max_work_samples];
    const Context& c = d.contexts[sample.context % max_contexts];
    const uint64_t stamp = utc_offset_us + sample.at_ns / 1000;
    if (stamp <= since_us) continue;
    ++periods;
    int pid = 0;
    if (!c.in_use || c.serial != sample.context_serial ||
        !alive(the_set(), c.client, c.client_generation, &pid) || pid == 0)
      continue;
    const auto same = std::ranges::find(rows, static_cast<unsigned>(pid), &Work::pid);
    Work& row = same != rows.end() ? *same : rows.emplace_back(Work{static_cast<unsigned>(pid), 0, 0});
    row.stamp_us = stamp;
    row.percent += sample.percent;
  }
  for (Work& row : rows) row.percent = std::min(100u, row.percent / std::max(1u, periods));
  return rows;
}

unsigned between(unsigned idle, unsigned busy, unsigned percent) {
  return idle + (busy - idle) * percent / 100;
}

nvmlReturn_t engine_idle(nvmlDevice_t device, unsigned* utilisation, unsigned* period_us) {
  if (const nvmlReturn_t e = fact(device, utilisation, [](const Facts&) { return 0; })) return e;
  return fact(device, period_us, [](const Facts&) { return 166'667; });
}

}  // namespace

// The object behind an nvmlEventSet_t: the registered devices, and how many of their errors have been
// reported.
struct nvmlEventSet_st {
  std::mutex mutex;
  struct {
    unsigned long long types;
    uint64_t seen;
  } devices[max_devices];
};

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* out) {
  const Facts* f = nullptr;
  uint64_t free = 0;
  if (const nvmlReturn_t e = free_memory(device, out, &f, &free)) return e;
  *out = {f->native_bytes, free, f->native_bytes - free};
  return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* out) {
  constexpr unsigned version = nvml_struct_version<nvmlMemory_v2_t>(2);
  if (out && out->version != version) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  const Facts* f = nullptr;
  uint64_t free = 0;
  if (const nvmlReturn_t e = free_memory(device, out, &f, &free)) return e;
  *out = {version, f->native_bytes, f->reserved_bytes, free, f->native_bytes - f->reserved_bytes - free};
  return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t* out) {
  return fact(device, out, [](const Facts& f) {
    const uint64_t used = 2ull << 20;
    return nvmlBAR1Memory_t{f.bar1_bytes, f.bar1_bytes - used, used};
  });
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int* count,
                                                         nvmlProcessInfo_v1_t* out) {
  return list_processes(device, count, out);
}
EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int* count,
                                                            nvmlProcessInfo_v2_t* out) {
  return list_processes(device, count, out);
}
EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int* count,
                                                            nvmlProcessInfo_t* out) {
  return list_processes(device, count, out);
}
EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t d, unsigned int* n,
                                                          nvmlProcessInfo_v1_t*) {
  return no_processes(d, n);
}
EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t d, unsigned int* n,
                                                             nvmlProcessInfo_v2_t*) {
  return no_processes(d, n);
}
EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t d, unsigned int* n,
                                                             nvmlProcessInfo_t*) {
  return no_processes(d, n);
}
EXPORT nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t device, unsigned int* count,
                                                            nvmlProcessInfo_v1_t* out) {
  return list_mps_clients(device, count, out);
}
EXPORT nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int* count,
                                                               nvmlProcessInfo_v2_t* out) {
  return list_mps_clients(device, count, out);
}
EXPORT nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int* count,
                                                               nvmlProcessInfo_t* out) {
  return list_mps_clients(device, count, out);
}

EXPORT nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_t* out) {
  Device* d = nullptr;
  if (const nvmlReturn_t e = find_device(device, &d)) return e;
  if (!out) return NVML_ERROR_INVALID_ARGUMENT;
  if (out->version != nvml_struct_version<nvmlProcessDetailList_v1_t>(1))
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  const std::vector<Usage> rows =
      out->mode == 0 ? processes(*d, device->index, now_ns()) : std::vector<Usage>();  // 0: compute
  const unsigned room = out->numProcArrayEntries;
  out->numProcArrayEntries = static_cast<unsigned>(rows.size());
  if (rows.size() > room) return NVML_ERROR_INSUFFICIENT_SIZE;
  for (size_t i = 0; i < rows.size() && out->procArray; ++i)
    out->procArray[i] = {static_cast<unsigned>(rows[i].pid), rows[i].bytes, 0xffffffff, 0xffffffff, 0};
  return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t* out,
                                                    unsigned int* count, unsigned long long since_us) {
  Device* d = nullptr;
  if (const nvmlReturn_t e = find_device(device, &d)) return e;
  if (!count) return NVML_ERROR_INVALID_ARGUMENT;
  const std::vector<Work> rows = work_since(*d, device->index, since_us);
  if (rows.empty()) return *count = 0, NVML_ERROR_NOT_FOUND;
  const unsigned room = *count;
  *count = static_cast<unsigned>(rows.size());
  if (!out || rows.size() > room) return NVML_ERROR_INSUFFICIENT_SIZE;
  for (size_t i = 0; i < rows.size(); ++i) out[i] = {rows[i].pid, rows[i].stamp_us, rows[i].percent, 0, 0, 0};
  return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
                                                          nvmlProcessesUtilizationInfo_t* out) {
  Device* d = nullptr;
  if (const nvmlReturn_t e = find_device(device, &d)) return e;
  if (!out) return NVML_ERROR_INVALID_ARGUMENT;
  if (out->version != nvml_struct_version<nvmlProcessesUtilizationInfo_v1_t>(1))
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  const std::vector<Work> rows = work_since(*d, device->index, out->lastSeenTimeStamp);
  if (rows.empty()) return out->processSamplesCount = 0, NVML_ERROR_NOT_FOUND;
  const unsigned room = out->processSamplesCount;
  out->processSamplesCount = static_cast<unsigned>(rows.size());
  if (!out->procUtilArray || rows.size() > room) return NVML_ERROR_INSUFFICIENT_SIZE;
  for (size_t i = 0; i < rows.size(); ++i)
    out->procUtilArray[i] = {rows[i].stamp_us, rows[i].pid, rows[i].percent, 0, 0, 0, 0, 0};
  return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t* out) {
  return state(device, out, [](Device& d, uint64_t now) {
    return nvmlUtilization_t{compute_percent(d, now), copy_percent(d, now)};
  });
}

EXPORT nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned int* out,
                                                    unsigned int* period) {
  return engine_idle(device, out, period);
}
EXPORT nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned int* out,
                                                    unsigned int* period) {
  return engine_idle(device, out, period);
}

EXPORT nvmlReturn_t nvmlDeviceGetJpgUtilization(nvmlDevice_t device, unsigned int* out,
                                                unsigned int* period) {
  return engine_idle(device, out, period);
}
EXPORT nvmlReturn_t nvmlDeviceGetOfaUtilization(nvmlDevice_t device, unsigned int* out,
                                                unsigned int* period) {
  return engine_idle(device, out, period);
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor,
                                             unsigned int* out) {
  if (sensor != NVML_TEMPERATURE_GPU) return NVML_ERROR_INVALID_ARGUMENT;
  return state(device, out, [](Device& d, uint64_t now) {
    return between(d.facts.temperature_idle_c, d.facts.temperature_busy_c, compute_percent(d, now));
  });
}

EXPORT nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int* out) {
  return state(device, out, [](Device& d, uint64_t now) {
    return between(d.facts.power_idle_mw, d.facts.power_limit_mw, compute_percent(d, now));
  });
}

// Returns the energy in millijoules since the set was created: the idle power, plus the additional power
// while kernels ran.
EXPORT nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long* out) {
  return state(device, out, [](Device& d, uint64_t now) {
    advance(d, now);
    const uint64_t idle_mw = d.facts.power_idle_mw, more_mw = d.facts.power_limit_mw - idle_mw;
    return d.engine.now_ns / 1'000'000 * idle_mw / 1000 + d.engine.busy_ns / 1'000'000 * more_mw / 1000;
  });
}

EXPORT nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, nvmlPstates_t* out) {
  return state(device, out,
               [](Device& d, uint64_t) { return d.engine.used ? NVML_PSTATE_0 : NVML_PSTATE_8; });
}
EXPORT nvmlReturn_t nvmlDeviceGetPowerState(nvmlDevice_t device, nvmlPstates_t* out) {
  return nvmlDeviceGetPerformanceState(device, out);
}
EXPORT nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long* out) {
  return state(device, out, [](Device& d, uint64_t now) {
    return compute_percent(d, now) ? nvmlClocksEventReasonNone : nvmlClocksEventReasonGpuIdle;
  });
}
EXPORT nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long* out) {
  return nvmlDeviceGetCurrentClocksThrottleReasons(device, out);
}
EXPORT nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, nvmlPcieUtilCounter_t which,
                                                unsigned int* out) {
  return state(device, out, [&](Device& d, uint64_t now) {
    const uint64_t mbps = which == NVML_PCIE_UTIL_RX_BYTES ? d.facts.to_device_mbps : d.facts.to_host_mbps;
    return mbps * 1000 * copy_percent(d, now) / 100;  // Kilobytes per second.
  });
}

EXPORT nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t* out) {
  if (const nvmlReturn_t e = entered()) return e;
  if (!out) return NVML_ERROR_INVALID_ARGUMENT;
  *out = new (std::nothrow) nvmlEventSet_st{};
  return *out ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}
EXPORT nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
  if (const nvmlReturn_t e = entered()) return e;
  if (!set) return NVML_ERROR_INVALID_ARGUMENT;
  delete set;
  return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types,
                                             nvmlEventSet_t set) {
  Device* d = nullptr;
  if (const nvmlReturn_t e = find_device(device, &d)) return e;
  if (!set) return NVML_ERROR_INVALID_ARGUMENT;
  if (types & ~nvmlEventTypeXidCriticalError) return NVML_ERROR_NOT_SUPPORTED;
  const std::lock_guard lock(set->mutex);
  if (!set->devices[device->index].types) set->devices[device->index].seen = d->faults.xid_serial;
  set->devices[device->index].types |= types;
  return NVML_SUCCESS;
}

// Polls every 2 ms, because the shared file has no list of waiters for Xids and a monitor can wait that long.
EXPORT nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t* out, unsigned int timeout_ms) {
  if (const nvmlReturn_t e = entered()) return e;
  if (!set || !out) return NVML_ERROR_INVALID_ARGUMENT;
  const uint64_t end = now_ns() + timeout_ms * 1'000'000ull;
  for (;;) {
    {
      const std::lock_guard lock(set->mutex);
      for (unsigned i = 0; i < the_set().count; ++i) {
        auto& registered = set->devices[i];
        if (!(registered.types & nvmlEventTypeXidCriticalError)) continue;
        Device& d = *the_set().devices[i];
        const Locked device(d, lock_timeout);
        if (registered.seen >= d.faults.xid_serial) continue;
        registered.seen = std::max(registered.seen,
                                   d.faults.xid_serial - std::min<uint64_t>(d.faults.xid_serial, max_xids));
        *out = {handle_of(i), nvmlEventTypeXidCriticalError, d.faults.xids[registered.seen % max_xids].code,
                0xffffffff, 0xffffffff};
        ++registered.seen;
        return NVML_SUCCESS;
      }
    }
    const uint64_t now = now_ns();
    if (now >= end) return NVML_ERROR_TIMEOUT;
    const uint64_t nap = std::min<uint64_t>(end - now, 2'000'000);
    const timespec t = {0, static_cast<long>(nap)};
    nanosleep(&t, nullptr);
  }
}
EXPORT nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t* out, unsigned int timeout_ms) {
  return nvmlEventSetWait_v2(set, out, timeout_ms);
}

EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t* values) {
  Device* d = nullptr;
  if (const nvmlReturn_t e = find_device(device, &d)) return e;
  if (count <= 0 || !values) return NVML_ERROR_INVALID_ARGUMENT;
  for (int i = 0; i < count; ++i) {
    nvmlFieldValue_t& v = values[i];
    v.timestamp = static_cast<long long>(utc_us());
    v.latencyUsec = 0;
    v.nvmlReturn = NVML_SUCCESS;
    v.valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
    switch (v.fieldId) {
      case NVML_FI_DEV_ECC_CURRENT:
      case NVML_FI_DEV_ECC_PENDING: v.value.uiVal = d->facts.ecc; break;
      case NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION:
        v.valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
        v.nvmlReturn = nvmlDeviceGetTotalEnergyConsumption(device, &v.value.ullVal);
        break;
      case NVML_FI_DEV_NVLINK_LINK_COUNT: v.value.uiVal = d->facts.nvlinks; break;
      case NVML_FI_DEV_PCIE_REPLAY_COUNTER: v.value.uiVal = 0; break;
      case NVML_FI_DEV_POWER_AVERAGE:
      case NVML_FI_DEV_POWER_INSTANT: v.nvmlReturn = nvmlDeviceGetPowerUsage(device, &v.value.uiVal); break;
      default: v.nvmlReturn = NVML_ERROR_NOT_SUPPORTED; break;
    }
  }
  return NVML_SUCCESS;
}
