// The steps of main() that prepare the machine before the agent serves requests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "node/options.h"
#include "node/settings/settings.h"
#include "os/fd.h"

namespace carve::node {

// Returns the paths of the libraries relative to this executable. Creates the simulated set.
Outcome<Paths> find_paths(const Options& options);

Outcome<std::vector<NodeDevice>> find_devices(Nvml& nvml, const Options& options, const Paths& paths);

// Returns the links between the devices: from --topology FILE or otherwise from the driver; no value if
// neither has any. Contradictory links are ignored with a warning.
Outcome<std::optional<place::Topology>> find_topology(const Nvml& nvml, const Options& options,
                                                      const std::vector<NodeDevice>& devices);

// Opens the API's socket. The group `carve`, if it exists, may use root's socket.
Outcome<os::Fd> open_api(const std::string& path);

}  // namespace carve::node
