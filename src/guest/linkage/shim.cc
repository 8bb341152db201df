// A shim is the driver as far as the program can see. Who mounted it wants it obeyed: its socket is compiled
// in and a missing one is an agent that is not there yet, not a machine without Carve. The two paths can be
// set when it is built, so that tests run it beside no mount.
#include "guest/linkage/artefact.h"

#ifndef CARVE_SHIM_SOCKET
#define CARVE_SHIM_SOCKET carve::shm::default_socket
#endif

namespace carve::guest {
namespace {
constexpr const Table* only[] = {&CARVE_SHIM_TABLE};
}

constinit const Artefact artefact = {
    shm::Guest::shim, {CARVE_SHIM_DRIVER, CARVE_SHIM_DRIVER}, CARVE_SHIM_SOCKET, false, only};

}  // namespace carve::guest
