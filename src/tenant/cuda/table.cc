// The driver's entries that we alter, sorted, and those that we only call. cmake makes the list of exported
// names from the HOOK rows.
#include "tenant/linkage/hook.h"

namespace carve::tenant {
namespace {

constexpr Hook hooks[] = {
    HOOK(cuCtxAttach),
    HOOK(cuCtxCreate),
    HOOK(cuCtxCreate_v2),
    HOOK(cuCtxCreate_v3),
    HOOK(cuCtxCreate_v4),
    HOOK(cuCtxDestroy),
    HOOK(cuCtxDestroy_v2),
    HOOK(cuCtxDetach),
    HOOK(cuDevicePrimaryCtxRelease),
    HOOK(cuDevicePrimaryCtxRelease_v2),
    HOOK(cuDevicePrimaryCtxReset),
    HOOK(cuDevicePrimaryCtxReset_v2),
    HOOK(cuDevicePrimaryCtxRetain),
    HOOK(cuDeviceTotalMem),
    HOOK(cuDeviceTotalMem_v2),
    HOOK(cuGetProcAddress),
    HOOK(cuGetProcAddress_v2),
    HOOK(cuGraphLaunch),
    HOOK(cuGraphLaunch_ptsz),
    HOOK(cuInit),
    HOOK(cuLaunch),
    HOOK(cuLaunchCooperativeKernel),
    HOOK(cuLaunchCooperativeKernelMultiDevice),
    HOOK(cuLaunchCooperativeKernel_ptsz),
    HOOK(cuLaunchGrid),
    HOOK(cuLaunchGridAsync),
    HOOK(cuLaunchKernel),
    HOOK(cuLaunchKernelEx),
    HOOK(cuLaunchKernelEx_ptsz),
    HOOK(cuLaunchKernel_ptsz),
    HOOK(cuMemAlloc),
    HOOK(cuMemAllocManaged),
    HOOK(cuMemAllocPitch),
    HOOK(cuMemAllocPitch_v2),
    HOOK(cuMemAlloc_v2),
    HOOK(cuMemFree),
    HOOK(cuMemFreeAsync),
    HOOK(cuMemFreeAsync_ptsz),
    HOOK(cuMemFree_v2),
    HOOK(cuMemGetInfo),
    HOOK(cuMemGetInfo_v2),
};
static_assert(sorted_and_unique(hooks));

constexpr Hook calls[] = {
    CALL(cuCtxGetCurrent),
    CALL(cuCtxGetDevice),
    CALL(cuDeviceGetUuid),
    CALL(cuDevicePrimaryCtxGetState),
};

}  // namespace

const Table cuda_table = {Api::cuda, hooks, calls};

}  // namespace carve::tenant
