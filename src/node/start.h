// The steps of main() that touch the machine before anything is served.
#pragma once

#include <sys/socket.h>

#include <memory>
#include <string>
#include <vector>

#include "node/agent/agent.h"
#include "node/options.h"

namespace carve::node {

// A directory of this user's own, made where it is missing. `mode` as in mkdir.
Outcome<void> make_directory(const std::string& path, unsigned mode);

// Held for the life of the process; the failure names the process that has it.
Outcome<Fd> hold_lock(const std::string& path, const std::string& what);

// One agent per set of devices on this machine, whatever its state and socket: an abstract unix socket per
// device, which the kernel takes away with its process.
Outcome<std::vector<Fd>> claim(const std::vector<std::string>& names);
std::vector<std::string> names_of(const std::vector<Device>& devices, const Paths& paths);

// Where our own and the driver's libraries lie, relative to this executable; makes the simulated set.
Outcome<Paths> find_paths(const Options& options);

Outcome<std::vector<NodeDevice>> find_devices(Nvml& nvml, const Options& options, const Paths& paths);

// How they are connected: as --topology FILE says, else as the driver does; nothing where neither is known. A
// driver that contradicts itself is not believed, and said to.
Outcome<std::optional<place::Topology>> find_topology(const Nvml& nvml, const Options& options,
                                                      const std::vector<NodeDevice>& devices);

// TCP, for metrics; `port` 0 becomes one that is free.
Outcome<Fd> open_metrics(const std::string& host, uint16_t& port);

// The API's socket: root's group `carve` may use it, where there is such a group.
Outcome<Fd> open_api(const std::string& path);

}  // namespace carve::node
