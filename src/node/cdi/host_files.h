// The files that a CDI file names are found by the host, which may see them elsewhere than the agent. If the
// agent is in a container of its own, two things differ:
//
// * The driver's libraries are the host's, whose root the agent has mounted somewhere (--driver-root). They
// are loaded
//   from there, and named as the host knows them.
// * Our own libraries are in the agent's image. They are copied into a folder that agent and host have at the
// same path
//   (--libraries), below the version. A file is replaced as a whole: containers that have it mounted keep the
//   old one.
#pragma once

#include <string>

#include "node/cdi/cdi.h"

namespace carve::node {

// Returns the file of a library of the driver below `root`, with links resolved inside of it; empty: there is
// none.
std::string find_below(const std::string& root, const std::string& library);

// Returns the path as the host knows it: without `root` in front of it. An empty root changes nothing.
std::string on_host(const std::string& path, const std::string& root);

// Copies shims, preload and, if devices are simulated, the driver to FOLDER/VERSION, and returns the paths
// with them. Files that are there with the same content are left.
Outcome<Paths> install_libraries(Paths, const std::string& folder, const std::string& version);

}  // namespace carve::node
