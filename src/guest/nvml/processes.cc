// The processes on a device: the slice's own, with their pids inside the slice (own_processes.h).
#include <string.h>
#include <time.h>

#include "guest/nvml/own_processes.h"

using namespace carve::guest;

namespace {

template <auto Entry, class Info>
nvmlReturn_t own_processes(nvmlDevice_t device, unsigned int* count, Info* infos) {
  const Entered entered = enter();
  if (entered.refused) return NVML_ERROR_DRIVER_NOT_LOADED;
  const Process* p = entered.process;
  if (p == nullptr || count == nullptr) return driver<Entry>(device, count, infos);
  return own(*p, count, infos, NVML_SUCCESS,
             [=](unsigned* n, Info* all) { return driver<Entry>(device, n, all); });
}

// Like own_processes(). With a count of 0, these calls return only the number of entries (nvml.h,
// nvmlDeviceGetEncoderSessions).
template <auto Entry, class Info>
nvmlReturn_t own_sessions(nvmlDevice_t device, unsigned int* count, Info* infos) {
  const bool only_counts = count != nullptr && *count == 0;
  const nvmlReturn_t result = own_processes<Entry>(device, count, infos);
  return only_counts && result == NVML_ERROR_INSUFFICIENT_SIZE ? NVML_SUCCESS : result;
}

// Recent activity of the slice's own processes in percent of the device, with the newest sample of each
// process.
struct Activity {
  unsigned sm = 0, memory = 0, encoder = 0, decoder = 0;
};

// Returns false if the driver cannot distinguish processes; then the caller uses the driver's figures for the
// device.
bool own_activity(const Process& p, nvmlDevice_t device, Activity* sum) {
  constexpr unsigned most = 4 * carve::shm::max_processes;
  const Scratch<nvmlProcessUtilizationSample_t> this_thread(most);
  if (this_thread.items() == nullptr) return false;
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  // As in nvmlDeviceGetUtilizationRates, a sample covers up to one second.
  const auto since = (static_cast<unsigned long long>(now.tv_sec) - 1) * 1'000'000 +
                     static_cast<uint64_t>(now.tv_nsec) / 1000;
  unsigned count = most;
  const nvmlReturn_t result = own(p, &count, this_thread.items(), NVML_ERROR_NOT_FOUND,
                                  [=](unsigned* n, nvmlProcessUtilizationSample_t* all) {
                                    return driver<&nvmlDeviceGetProcessUtilization>(device, all, n, since);
                                  });
  if (result == NVML_ERROR_NOT_FOUND) return true;  // No process was active.
  if (result != NVML_SUCCESS) return false;
  const nvmlProcessUtilizationSample_t* const samples = this_thread.items();
  for (unsigned i = 0; i < count; ++i) {
    bool newest = true;
    for (unsigned other = 0; other < count && newest; ++other)
      newest = samples[other].pid != samples[i].pid || samples[other].timeStamp < samples[i].timeStamp ||
               (samples[other].timeStamp == samples[i].timeStamp && other >= i);
    if (!newest) continue;
    sum->sm += samples[i].smUtil;
    sum->memory += samples[i].memUtil;
    sum->encoder += samples[i].encUtil;
    sum->decoder += samples[i].decUtil;
  }
  for (unsigned* percent : {&sum->sm, &sum->memory, &sum->encoder, &sum->decoder})
    *percent = std::min(*percent, 100u);
  return true;
}

template <auto Entry>
nvmlReturn_t own_engine(nvmlDevice_t device, unsigned* percent, unsigned* period_us,
                        unsigned Activity::*which) {
  const nvmlReturn_t result = driver<Entry>(device, percent, period_us);
  const Entered entered = enter();
  if (entered.refused) return NVML_ERROR_DRIVER_NOT_LOADED;
  Activity this_thread;
  if (result == NVML_SUCCESS && percent != nullptr && entered.process != nullptr &&
      own_activity(*entered.process, device, &this_thread))
    *percent = this_thread.*which;
  return result;
}

}  // namespace

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t* rates) {
  const nvmlReturn_t result = driver<&nvmlDeviceGetUtilizationRates>(device, rates);
  const Entered entered = enter();
  if (entered.refused) return NVML_ERROR_DRIVER_NOT_LOADED;
  Activity this_thread;
  if (result == NVML_SUCCESS && rates != nullptr && entered.process != nullptr &&
      own_activity(*entered.process, device, &this_thread))
    *rates = {this_thread.sm, this_thread.memory};
  return result;
}

nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned* percent, unsigned* period_us) {
  return own_engine<&nvmlDeviceGetEncoderUtilization>(device, percent, period_us, &Activity::encoder);
}
nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned* percent, unsigned* period_us) {
  return own_engine<&nvmlDeviceGetDecoderUtilization>(device, percent, period_us, &Activity::decoder);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned* count,
                                                  nvmlProcessInfo_v1_t* infos) {
  return own_processes<&nvmlDeviceGetComputeRunningProcesses>(device, count, infos);
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned* count,
                                                     nvmlProcessInfo_v2_t* infos) {
  return own_processes<&nvmlDeviceGetComputeRunningProcesses_v2>(device, count, infos);
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned* count,
                                                     nvmlProcessInfo_t* infos) {
  return own_processes<&nvmlDeviceGetComputeRunningProcesses_v3>(device, count, infos);
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device, unsigned* count,
                                                   nvmlProcessInfo_v1_t* infos) {
  return own_processes<&nvmlDeviceGetGraphicsRunningProcesses>(device, count, infos);
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device, unsigned* count,
                                                      nvmlProcessInfo_v2_t* infos) {
  return own_processes<&nvmlDeviceGetGraphicsRunningProcesses_v2>(device, count, infos);
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned* count,
                                                      nvmlProcessInfo_t* infos) {
  return own_processes<&nvmlDeviceGetGraphicsRunningProcesses_v3>(device, count, infos);
}
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t device, unsigned* count,
                                                     nvmlProcessInfo_v1_t* infos) {
  return own_processes<&nvmlDeviceGetMPSComputeRunningProcesses>(device, count, infos);
}
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t device, unsigned* count,
                                                        nvmlProcessInfo_v2_t* infos) {
  return own_processes<&nvmlDeviceGetMPSComputeRunningProcesses_v2>(device, count, infos);
}
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned* count,
                                                        nvmlProcessInfo_t* infos) {
  return own_processes<&nvmlDeviceGetMPSComputeRunningProcesses_v3>(device, count, infos);
}

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t* samples,
                                             unsigned int* count, unsigned long long since) {
  const Entered entered = enter();
  if (entered.refused) return NVML_ERROR_DRIVER_NOT_LOADED;
  const Process* p = entered.process;
  if (p == nullptr || count == nullptr)
    return driver<&nvmlDeviceGetProcessUtilization>(device, samples, count, since);
  return own(*p, count, samples, NVML_ERROR_NOT_FOUND, [=](unsigned* n, nvmlProcessUtilizationSample_t* all) {
    return driver<&nvmlDeviceGetProcessUtilization>(device, all, n, since);
  });
}

nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
                                                   nvmlProcessesUtilizationInfo_t* info) {
  const Entered entered = enter();
  if (entered.refused) return NVML_ERROR_DRIVER_NOT_LOADED;
  const Process* p = entered.process;
  if (p == nullptr || info == nullptr) return driver<&nvmlDeviceGetProcessesUtilizationInfo>(device, info);
  return own(*p, &info->processSamplesCount, info->procUtilArray, NVML_ERROR_NOT_FOUND,
             [=](unsigned* n, nvmlProcessUtilizationInfo_v1_t* all) {
               nvmlProcessesUtilizationInfo_t whole = *info;
               whole.processSamplesCount = *n;
               whole.procUtilArray = all;
               const nvmlReturn_t result = driver<&nvmlDeviceGetProcessesUtilizationInfo>(device, &whole);
               *n = whole.processSamplesCount;
               return result;
             });
}

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_t* list) {
  const Entered entered = enter();
  if (entered.refused) return NVML_ERROR_DRIVER_NOT_LOADED;
  const Process* p = entered.process;
  if (p == nullptr || list == nullptr) return driver<&nvmlDeviceGetRunningProcessDetailList>(device, list);
  return own(*p, &list->numProcArrayEntries, list->procArray, NVML_SUCCESS,
             [=](unsigned* n, nvmlProcessDetail_v1_t* all) {
               nvmlProcessDetailList_t whole = *list;
               whole.numProcArrayEntries = *n;
               whole.procArray = all;
               const nvmlReturn_t result = driver<&nvmlDeviceGetRunningProcessDetailList>(device, &whole);
               *n = whole.numProcArrayEntries;
               return result;
             });
}

// The driver's accounting also lists ended processes, which no longer have slots, so only running processes
// are returned.
nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned int* count, unsigned int* pids) {
  const Entered entered = enter();
  if (entered.refused) return NVML_ERROR_DRIVER_NOT_LOADED;
  const Process* p = entered.process;
  if (p == nullptr || count == nullptr) return driver<&nvmlDeviceGetAccountingPids>(device, count, pids);
  struct Pid {
    unsigned int pid;
  };
  return own(*p, count, reinterpret_cast<Pid*>(pids), NVML_SUCCESS, [=](unsigned* n, Pid* all) {
    return driver<&nvmlDeviceGetAccountingPids>(device, n, &all->pid);
  });
}

nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned int pid,
                                          nvmlAccountingStats_t* stats) {
  const Entered entered = enter();
  if (entered.refused) return NVML_ERROR_DRIVER_NOT_LOADED;
  const Process* p = entered.process;
  if (p == nullptr) return driver<&nvmlDeviceGetAccountingStats>(device, pid, stats);
  const uint32_t outer = outer_pid(*p, pid);
  if (outer == 0) return NVML_ERROR_NOT_FOUND;
  const nvmlReturn_t result = driver<&nvmlDeviceGetAccountingStats>(device, outer, stats);
  return result == NVML_ERROR_NOT_FOUND ? driver<&nvmlDeviceGetAccountingStats>(device, pid, stats) : result;
}

nvmlReturn_t nvmlDeviceGetAccountingStats_v2(nvmlDevice_t device, nvmlAccountingStats_v2_t* stats) {
  const Entered entered = enter();
  if (entered.refused) return NVML_ERROR_DRIVER_NOT_LOADED;
  const Process* p = entered.process;
  if (p == nullptr || stats == nullptr) return driver<&nvmlDeviceGetAccountingStats_v2>(device, stats);
  const unsigned int pid = stats->pid;
  const uint32_t outer = outer_pid(*p, pid);
  if (outer == 0) return NVML_ERROR_NOT_FOUND;
  stats->pid = outer;
  nvmlReturn_t result = driver<&nvmlDeviceGetAccountingStats_v2>(device, stats);
  stats->pid = pid;
  if (result == NVML_ERROR_NOT_FOUND) result = driver<&nvmlDeviceGetAccountingStats_v2>(device, stats);
  return result;
}

nvmlReturn_t nvmlDeviceGetEncoderSessions(nvmlDevice_t device, unsigned int* count,
                                          nvmlEncoderSessionInfo_t* infos) {
  return own_sessions<&nvmlDeviceGetEncoderSessions>(device, count, infos);
}
nvmlReturn_t nvmlDeviceGetFBCSessions(nvmlDevice_t device, unsigned int* count, nvmlFBCSessionInfo_t* infos) {
  return own_sessions<&nvmlDeviceGetFBCSessions>(device, count, infos);
}
