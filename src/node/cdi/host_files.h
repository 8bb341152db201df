// The host resolves the file names in a CDI file, and its paths may differ from the agent's. If the agent
// runs in a container, two things differ:
//
// * The driver's libraries are the host's, and the agent has the host's root mounted somewhere
//   (--driver-root). They are loaded from there, and named as the host knows them.
// * Carve's own libraries are in the agent's image. They are copied into a folder that agent and host have at
//   the same path (--libraries), below the version. A file is replaced as a whole: containers that have it
//   mounted keep the old one.
#pragma once

#include <string>

#include "node/cdi/cdi.h"

namespace carve::node {

// Returns the file of a driver library below `root`, with links resolved inside of it; empty if there is
// none.
std::string find_below(const std::string& root, const std::string& library);

// Returns the path as the host knows it: without the leading `root`. An empty root changes nothing.
std::string on_host(const std::string& path, const std::string& root);

// Copies shims, preload and, if devices are simulated, the driver to FOLDER/VERSION, and returns the new
// paths. Existing files with the same content are left alone.
Outcome<Paths> install_libraries(Paths, const std::string& folder, const std::string& version);

}  // namespace carve::node
