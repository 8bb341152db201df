// NVML's initialisation. A monitor inside a slice attaches like any other process.
#include "guest/linkage/hook.h"
#include "guest/process/process_page.h"

using namespace carve::guest;

namespace {

template <class Init>
nvmlReturn_t entered(Init init) {
  if (attached() == nullptr && attach_slowly(true).refused) return NVML_ERROR_DRIVER_NOT_LOADED;
  return init();
}

}  // namespace

nvmlReturn_t nvmlInit() {
  return entered([] { return driver<&nvmlInit>(); });
}

nvmlReturn_t nvmlInit_v2() {
  return entered([] { return driver<&nvmlInit_v2>(); });
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags) {
  return entered([=] { return driver<&nvmlInitWithFlags>(flags); });
}
