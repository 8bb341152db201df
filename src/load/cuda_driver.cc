#include "load/cuda_driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <string_view>

namespace carve::load {
namespace {

// cuGetProcAddress takes the name without its ABI suffix and returns the newest version up to this CUDA
// version.
constexpr int cuda_version = 12000;

// The two forms of cuGetProcAddress: that of CUDA 12, or that of 11.3 if the driver lacks the newer one. Both
// are null if dlsym is used.
struct ByName {
  decltype(&::cuGetProcAddress_v2) current = nullptr;
  decltype(&::cuGetProcAddress) early = nullptr;
};

void* look_up(void* library, const ByName& by_name, std::string_view name) {
  if (by_name.current == nullptr && by_name.early == nullptr)
    return dlsym(library, std::string(name).c_str());
  std::string base(name);
  if (base.size() > 3 && base[base.size() - 3] == '_' && base[base.size() - 2] == 'v')
    base.resize(base.size() - 3);
  void* entry = nullptr;
  CUdriverProcAddressQueryResult why{};
  const CUresult result = by_name.current != nullptr
                              ? by_name.current(base.c_str(), &entry, cuda_version, 0, &why)
                              : by_name.early(base.c_str(), &entry, cuda_version, 0);
  return result == CUDA_SUCCESS ? entry : nullptr;
}

std::string text_of(const Driver& driver, CUresult result) {
  const char* text = nullptr;
  if (driver.cuGetErrorString == nullptr || driver.cuGetErrorString(result, &text) != CUDA_SUCCESS)
    return "unknown error";
  return text;
}

std::string name_of(const Driver& driver, CUresult result) {
  const char* name = nullptr;
  if (driver.cuGetErrorName == nullptr || driver.cuGetErrorName(result, &name) != CUDA_SUCCESS)
    return fmt::format("CUresult {}", static_cast<int>(result));
  return name;
}

}  // namespace

Refused::Refused(const Driver& driver, CUresult r, const std::string& what)
    : std::runtime_error(fmt::format("{}: {}: {}", what, name_of(driver, r), text_of(driver, r))),
      name(name_of(driver, r)),
      result(r) {}

Driver open_driver(Lookup lookup) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw NoDriver(fmt::format("no CUDA driver: {}", dlerror()));
  ByName by_name;
  if (lookup == Lookup::getproc) {
    by_name.current = reinterpret_cast<decltype(by_name.current)>(dlsym(library, "cuGetProcAddress_v2"));
    by_name.early = reinterpret_cast<decltype(by_name.early)>(dlsym(library, "cuGetProcAddress"));
    if (by_name.current == nullptr && by_name.early == nullptr)
      throw NoDriver("this driver has no cuGetProcAddress (CUDA 11.3); use --lookup dlsym");
  }
  Driver driver;
#define X(entry)                                                                              \
  driver.entry = reinterpret_cast<decltype(driver.entry)>(look_up(library, by_name, #entry)); \
  if (driver.entry == nullptr) throw NoDriver("this driver has no " #entry);
  CARVE_LOAD_ENTRIES(X)
#undef X
#define X(entry) driver.entry = reinterpret_cast<decltype(driver.entry)>(look_up(library, by_name, #entry));
  CARVE_LOAD_LATER_ENTRIES(X)
#undef X
  return driver;
}

}  // namespace carve::load
