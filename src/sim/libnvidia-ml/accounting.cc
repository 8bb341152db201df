// Accounting: the processes that have used a device since accounting was turned on, with the most memory that
// each held. Ended processes are included.
//
// The rules are from the group "Accounting Statistics" in nvml.h of CUDA 13. Accounting is off until
// root turns it on, it cannot be turned on in MIG mode, and turning it off removes all accounts. If two ended
// processes had the same pid, the last one is reported. The utilisation over a process's life is not
// simulated.
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "sim/libnvidia-ml/handles.h"

using namespace carve::sim;

namespace {

struct AccountRow {
  unsigned pid;
  bool is_running;
  Accounted entry;
};

// Calls visit(row) for each account, the newest first, until visit() returns true.
template <class Visit>
void newest_first(const Device& d, Visit visit) {
  const Accounting& all = d.accounting;
  for (uint32_t client = 0; client < max_clients; ++client) {
    if (!(all.running[client / 64] >> client % 64 & 1)) continue;
    int pid = 0;
    if (!alive(the_set(), client, all.clients[client].generation, &pid) || pid == 0) continue;
    if (visit({static_cast<unsigned>(pid), true, all.clients[client]})) return;
  }
  const uint64_t kept = std::min<uint64_t>(all.ended_count, max_accounted);
  for (uint64_t n = all.ended_count; n > all.ended_count - kept; --n) {
    const Accounted& entry = all.ended[(n - 1) % max_accounted];
    const int pid = pid_of(the_set(), entry.client, entry.generation);
    if (pid != 0 && visit({static_cast<unsigned>(pid), false, entry})) return;
  }
}

// If accounting is on, calls act(device) with the device's lock held.
template <class Act>
nvmlReturn_t with_accounts(nvmlDevice_t device, const void* out, Act act) {
  Device* d = nullptr;
  if (const nvmlReturn_t e = find_device(device, &d)) return e;
  if (!out) return NVML_ERROR_INVALID_ARGUMENT;
  if (d->faults.no_accounting || d->faults.mig || !d->accounting.on) return NVML_ERROR_NOT_SUPPORTED;
  const Locked lock(*d, lock_timeout);
  if (!lock.held()) return NVML_ERROR_TIMEOUT;
  sweep(the_set(), device->index, now_ns(), true);
  return act(*d);
}

// Returns whether the caller has an administrator's rights: root, or the user who made the set.
bool is_administrator() {
  struct stat st = {};
  return geteuid() == 0 || (stat(the_set().directory, &st) == 0 && st.st_uid == geteuid());
}

uint64_t utc_offset() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec) - now_ns();
}

}  // namespace

EXPORT nvmlReturn_t nvmlDeviceGetAccountingMode(nvmlDevice_t device, nvmlEnableState_t* out) {
  Device* d = nullptr;
  if (const nvmlReturn_t e = find_device(device, &d)) return e;
  if (!out) return NVML_ERROR_INVALID_ARGUMENT;
  if (d->faults.no_accounting) return NVML_ERROR_NOT_SUPPORTED;
  *out = d->accounting.on && !d->faults.mig ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
  return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceSetAccountingMode(nvmlDevice_t device, nvmlEnableState_t mode) {
  Device* d = nullptr;
  if (const nvmlReturn_t e = find_device(device, &d)) return e;
  if (mode != NVML_FEATURE_ENABLED && mode != NVML_FEATURE_DISABLED) return NVML_ERROR_INVALID_ARGUMENT;
  if (d->faults.no_accounting || d->faults.mig) return NVML_ERROR_NOT_SUPPORTED;
  if (!is_administrator()) return NVML_ERROR_NO_PERMISSION;
  const Locked lock(*d, lock_timeout);
  if (!lock.held()) return NVML_ERROR_TIMEOUT;
  Accounting& all = d->accounting;
  const bool on = mode == NVML_FEATURE_ENABLED;
  if (on && !all.on) all.utc_offset_ns = utc_offset();
  all.on = on;
  if (on) return NVML_SUCCESS;
  std::ranges::fill(all.running, 0);
  clear_accounts(*d);
  return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetAccountingBufferSize(nvmlDevice_t device, unsigned int* out) {
  return with_accounts(device, out, [&](Device&) {
    *out = max_accounted;
    return NVML_SUCCESS;
  });
}

EXPORT nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned int* count,
                                                unsigned int* pids) {
  return with_accounts(device, count, [&](Device& d) {
    std::vector<unsigned> all;
    newest_first(d, [&](const AccountRow& account) {
      all.push_back(account.pid);
      return false;
    });
    std::ranges::sort(all);
    const auto repeated = std::ranges::unique(all);
    all.erase(repeated.begin(), repeated.end());
    const unsigned room = *count;
    *count = static_cast<unsigned>(all.size());
    if (all.size() > room) return NVML_ERROR_INSUFFICIENT_SIZE;
    if (!all.empty() && !pids) return NVML_ERROR_INVALID_ARGUMENT;
    std::ranges::copy(all, pids);
    return NVML_SUCCESS;
  });
}

namespace {

nvmlReturn_t stats_of(Device& d, unsigned int pid, nvmlAccountingStats_v2_t* out) {
  std::optional<AccountRow> found;
  newest_first(d, [&](const AccountRow& account) {
    if (account.pid == pid) found = account;
    return found.has_value();
  });
  if (!found) return NVML_ERROR_NOT_FOUND;
  const Accounted& entry = found->entry;
  *out = {};
  out->pid = pid;
  out->gpuUtilization = out->memoryUtilization = static_cast<unsigned>(NVML_VALUE_NOT_AVAILABLE);
  out->maxMemoryUsage = entry.peak_bytes;
  out->time = found->is_running ? 0 : (entry.end_ns - entry.start_ns) / 1'000'000;
  out->startTime = (d.accounting.utc_offset_ns + entry.start_ns) / 1000;
  out->isRunning = found->is_running;
  return NVML_SUCCESS;
}

}  // namespace

EXPORT nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned int pid,
                                                 nvmlAccountingStats_t* out) {
  return with_accounts(device, out, [&](Device& d) {
    nvmlAccountingStats_v2_t stats;
    const nvmlReturn_t result = stats_of(d, pid, &stats);
    if (result != NVML_SUCCESS) return result;
    *out = {};
    out->gpuUtilization = stats.gpuUtilization;
    out->memoryUtilization = stats.memoryUtilization;
    out->maxMemoryUsage = stats.maxMemoryUsage;
    out->time = stats.time;
    out->startTime = stats.startTime;
    out->isRunning = stats.isRunning;
    return NVML_SUCCESS;
  });
}

EXPORT nvmlReturn_t nvmlDeviceGetAccountingStats_v2(nvmlDevice_t device, nvmlAccountingStats_v2_t* out) {
  return with_accounts(device, out, [&](Device& d) { return stats_of(d, out->pid, out); });
}

EXPORT nvmlReturn_t nvmlDeviceClearAccountingPids(nvmlDevice_t device) {
  static constexpr bool present = true;
  if (!is_administrator()) return NVML_ERROR_NO_PERMISSION;
  return with_accounts(device, &present, [](Device& d) {
    clear_accounts(d);
    return NVML_SUCCESS;
  });
}
