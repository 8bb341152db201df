// A slice as a device that container runtimes know: one CDI file per slice (Container Device Interface
// specification 0.3.0, the oldest version with kind, devices, mounts, env and hooks; podman 4.3 reads it).
// `podman run --device carve.dev/slice=NAME IMAGE` then mounts our library as the CUDA driver in front of the
// real one, the attach socket, and calls `carve hook NAME` before the program starts.
#pragma once

#include <string>
#include <vector>

#include "core/failure.h"
#include "core/slice.h"

namespace carve::node {

// Where things lie on this machine.
struct Paths {
  std::string programs;  // The directory of carve and carved.
  std::string preload;   // libcarve.so
  std::string shims;     // The directory of the two shims.
  std::string driver;    // The directory of the driver's libraries; empty: found by the loader.
  std::string sim_set;   // The simulated set's directory; empty: real devices.
  std::string sim_spec;  // "a10x2"; empty: real devices.
  std::string libcuda = "libcuda.so.1";
  std::string libnvml = "libnvidia-ml.so.1";
};

inline constexpr const char* cdi_kind = "carve.dev/slice";

// The directory that containers get: the attach socket stands in it under its default name and nothing else
// does. A directory, because a mounted socket would be the one of the agent that mounted it: the next agent's
// has another inode, and a program started later in the container would knock at a door that nobody opens.
std::string attach_directory(const std::string& socket);

// Puts the socket that now listens at `socket`.attach into the door.
Outcome<void> publish_attach_socket(const std::string& socket);

// The file's text. `minors`: N of /dev/nvidiaN for each slice; empty where devices are simulated.
std::string cdi_spec(const Slice&, const std::string& socket, const Paths&,
                     const std::vector<unsigned>& minors);

// Written beside and renamed, so that no runtime ever reads half of it.
Outcome<void> write_cdi(const std::string& directory, const Slice&, const std::string& socket, const Paths&,
                        const std::vector<unsigned>& minors);
void remove_cdi(const std::string& directory, const std::string& slice);

}  // namespace carve::node
