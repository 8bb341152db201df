// The two functions through which every program enters the driver: cuInit, where a process attaches to its
// slice, and cuGetProcAddress, from which the CUDA runtime gets every other entry point.
#include "guest/context/visible_devices.h"
#include "guest/linkage/hook.h"
#include "guest/process/process_page.h"

using namespace carve::guest;

CUresult cuInit(unsigned int flags) {
  Process* p = attached();
  if (p == nullptr) {
    const Entered entered = attach_slowly(true);
    if (entered.refused) return CUDA_ERROR_SYSTEM_NOT_READY;
    p = entered.process;
  }
  if (p == nullptr) return driver<&cuInit>(flags);
  const VisibleByUuid visible(*p);
  return driver<&cuInit>(flags);
}

namespace {

CUresult exchanged_for(CUresult result, void** pfn) {
  if (result == CUDA_SUCCESS && pfn != nullptr) *pfn = exchanged(*pfn);
  return result;
}

}  // namespace

CUresult cuGetProcAddress(const char* symbol, void** pfn, int cuda_version, cuuint64_t flags) {
  return exchanged_for(driver<&cuGetProcAddress>(symbol, pfn, cuda_version, flags), pfn);
}

CUresult cuGetProcAddress_ptsz(const char* symbol, void** pfn, int cuda_version, cuuint64_t flags) {
  return exchanged_for(driver<&cuGetProcAddress_ptsz>(symbol, pfn, cuda_version, flags), pfn);
}

CUresult cuGetProcAddress_v2(const char* symbol, void** pfn, int cuda_version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* symbol_status) {
  return exchanged_for(driver<&cuGetProcAddress_v2>(symbol, pfn, cuda_version, flags, symbol_status), pfn);
}

CUresult cuGetProcAddress_v2_ptsz(const char* symbol, void** pfn, int cuda_version, cuuint64_t flags,
                                  CUdriverProcAddressQueryResult* symbol_status) {
  return exchanged_for(driver<&cuGetProcAddress_v2_ptsz>(symbol, pfn, cuda_version, flags, symbol_status),
                       pfn);
}
