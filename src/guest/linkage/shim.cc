// To the program, a shim is the driver. It was mounted to enforce limits. So the path of its socket is
// compiled in, and a missing socket means that the agent has not started yet. Both paths can be set in the
// build, so that tests run the shim without a mount.
#include <dlfcn.h>

#include "guest/linkage/artefact.h"
#include "guest/linkage/libc.h"
#include "guest/linkage/own_symbols.h"

#ifndef CARVE_SHIM_SOCKET
#define CARVE_SHIM_SOCKET carve::shm::default_socket
#endif

namespace carve::guest {
namespace {
constexpr const Table* only[] = {&CARVE_SHIM_TABLE};

// A program must find only the names that its driver has, because it uses them to decide what the driver can
// do. The driver is loaded before this library, and this runs before dlopen returns
// (docs/decisions/0028-driver-names.md).
[[gnu::constructor]] void hide_names_that_the_driver_lacks() {
  void* const driver = open_library(CARVE_SHIM_DRIVER, RTLD_LAZY | RTLD_NOLOAD);
  const auto dlsym_ = find_dlsym();
  if (driver == nullptr || dlsym_ == nullptr) return;
  for (const Hook& row : CARVE_SHIM_TABLE.hooks)
    if (dlsym_(driver, row.symbol) == nullptr) hide_own_symbol(row.symbol);
  forget_library_error();
}
}  // namespace

constinit const Artefact artefact = {
    shm::Guest::shim, {CARVE_SHIM_DRIVER, CARVE_SHIM_DRIVER}, CARVE_SHIM_SOCKET, false, only};

}  // namespace carve::guest
