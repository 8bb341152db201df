// A shim is the driver for the program. The user who mounted it requires it to be obeyed. So its socket is
// compiled in, and a missing socket means that the agent has not started yet. Both paths can be set in the
// build, so that tests run the shim without a mount.
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
