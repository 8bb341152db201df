// File names in a CDI file are resolved on the host, whose paths may differ from the agent's. If the agent
// runs in a container, there are two differences:
//
// * The driver's libraries are the host's, and the agent has the host's root mounted somewhere
//   (--driver-root). They are loaded from there and named by their paths on the host.
// * Carve's own libraries are in the agent's image. They are copied to a folder that agent and host have at
//   the same path (--libraries), below the version. Files are replaced atomically: containers that have one
//   mounted keep the old one.
#pragma once

#include <string>

#include "node/cdi/cdi.h"

namespace carve::node {

// Returns the file of a driver library below `root`, with links resolved within `root`; empty if there is
// none.
std::string find_below(const std::string& root, const std::string& library);

// Returns the path on the host, which lacks the leading `root`. An empty root changes nothing.
std::string on_host(const std::string& path, const std::string& root);

// Copies the shims, the preload and, if devices are simulated, the driver to FOLDER/VERSION, and returns the
// new paths. Existing files with the same content are not replaced.
Outcome<Paths> install_libraries(Paths, const std::string& folder, const std::string& version);

}  // namespace carve::node
