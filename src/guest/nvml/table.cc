// NVML's entry points with hooks, sorted, and the entry points that are only called.
#include "guest/linkage/hook.h"

namespace carve::guest {
namespace {

constexpr Hook hooks[] = {
    HOOK(nvmlDeviceGetAccountingPids),
    HOOK(nvmlDeviceGetAccountingStats),
    HOOK(nvmlDeviceGetAccountingStats_v2),
    HOOK(nvmlDeviceGetComputeRunningProcesses),
    HOOK(nvmlDeviceGetComputeRunningProcesses_v2),
    HOOK(nvmlDeviceGetComputeRunningProcesses_v3),
    HOOK(nvmlDeviceGetCount),
    HOOK(nvmlDeviceGetCount_v2),
    HOOK(nvmlDeviceGetDecoderUtilization),
    HOOK(nvmlDeviceGetEncoderSessions),
    HOOK(nvmlDeviceGetEncoderUtilization),
    HOOK(nvmlDeviceGetFBCSessions),
    HOOK(nvmlDeviceGetFieldValues),
    HOOK(nvmlDeviceGetGraphicsRunningProcesses),
    HOOK(nvmlDeviceGetGraphicsRunningProcesses_v2),
    HOOK(nvmlDeviceGetGraphicsRunningProcesses_v3),
    HOOK(nvmlDeviceGetHandleByIndex),
    HOOK(nvmlDeviceGetHandleByIndex_v2),
    HOOK(nvmlDeviceGetHandleByPciBusId),
    HOOK(nvmlDeviceGetHandleByPciBusId_v2),
    HOOK(nvmlDeviceGetHandleBySerial),
    HOOK(nvmlDeviceGetHandleByUUID),
    HOOK(nvmlDeviceGetHandleByUUIDV),
    HOOK(nvmlDeviceGetIndex),
    HOOK(nvmlDeviceGetMPSComputeRunningProcesses),
    HOOK(nvmlDeviceGetMPSComputeRunningProcesses_v2),
    HOOK(nvmlDeviceGetMPSComputeRunningProcesses_v3),
    HOOK(nvmlDeviceGetMemoryInfo),
    HOOK(nvmlDeviceGetMemoryInfo_v2),
    HOOK(nvmlDeviceGetPowerUsage),
    HOOK(nvmlDeviceGetProcessUtilization),
    HOOK(nvmlDeviceGetProcessesUtilizationInfo),
    HOOK(nvmlDeviceGetRunningProcessDetailList),
    HOOK(nvmlDeviceGetSamples),
    HOOK(nvmlDeviceGetTopologyNearestGpus),
    HOOK(nvmlDeviceGetTotalEnergyConsumption),
    HOOK(nvmlDeviceGetUtilizationRates),
    HOOK(nvmlInit),
    HOOK(nvmlInitWithFlags),
    HOOK(nvmlInit_v2),
    HOOK(nvmlInternalGetExportTable),
    HOOK(nvmlSystemGetTopologyGpuSet),
};
static_assert(sorted_and_unique(hooks));

constexpr Hook calls[] = {
    CALL(nvmlDeviceGetUUID),
};

}  // namespace

const Table nvml_table = {Api::nvml, hooks, calls};

}  // namespace carve::guest
