// A slice as a device of container runtimes: one CDI file per slice (Container Device Interface specification
// 0.3.0, the oldest version with kind, devices, mounts, env and hooks; podman 4.3 reads it). For `podman run
// --device carve.dev/slice=NAME IMAGE` the runtime mounts the guest library as the CUDA driver in front of
// the real one, and the attach directory. It calls `carve hook NAME` before the program starts.
#pragma once

#include <string>
#include <vector>

#include "core/container_slot.h"
#include "core/failure.h"
#include "core/slice.h"
#include "os/fd.h"
#include "wire/api/slice.h"

namespace carve::node {

// Paths on this node.
struct Paths {
  std::string programs;  // The directory of carve and carved.
  std::string preload;   // libcarve.so
  std::string shims;     // The directory of the two shims.
  std::string driver;    // The directory of the driver's libraries; empty: the loader finds them.
  std::string sim_set;   // The simulated set's directory; empty: real devices.
  std::string sim_spec;  // "a10x2"; empty: real devices.
  std::string libcuda = "libcuda.so.1";
  std::string libnvml = "libnvidia-ml.so.1";
  std::string driver_root;  // Where the agent has the host's root mounted; empty: it is the host's own.
};

inline constexpr const char* cdi_kind = "carve.dev/slice";
inline constexpr const char* slot_cdi_kind = "carve.dev/slot";

// Returns the attach directory, which containers get mounted. It holds the attach socket under its default
// name and nothing else. A mounted socket instead of a directory would stay the one of the agent that started
// the container. The next agent's socket has another inode, so programs that start later in the container
// could not connect.
std::string attach_directory(const std::string& socket);

// Puts the socket that now listens at `socket`.attach into the attach directory.
Outcome<void> publish_attach_socket(const std::string& socket);
// Returns whether the attach directory has the present attach socket, or the directory of the slot has one.
bool is_attach_socket_published(const std::string& socket);
bool has_attach_socket(const std::string& socket, ContainerSlot slot);

// The attach directory of one slot, below the other. It stays the same directory over restarts of the agent,
// because containers have it mounted; only the socket inside is made again.
std::string attach_directory(const std::string& socket, ContainerSlot);

// Makes the attach directory of the slot, and a socket that listens inside it.
Outcome<os::Fd> listen_in(const std::string& socket, ContainerSlot);
void remove_attach_directory(const std::string& socket, ContainerSlot);

// Returns the file's text. `minors`: N of /dev/nvidiaN for each device; empty if devices are simulated.
std::string cdi_spec(const Slice&, const std::string& socket, const Paths&,
                     const std::vector<unsigned>& minors);

// Writes a new file and renames it, so that no runtime reads half of it.
Outcome<void> write_cdi(const std::string& directory, const Slice&, const std::string& socket, const Paths&,
                        const std::vector<unsigned>& minors);
void remove_cdi(const std::string& directory, const std::string& slice);

// The same for a slot, which the device plugin has named before its slice was known. No program is called at
// the container's start, and the slot's own attach directory is mounted.
std::string cdi_spec(ContainerSlot, const Slice&, const std::string& socket, const Paths&,
                     const std::vector<unsigned>& minors);
Outcome<void> write_cdi(const std::string& directory, ContainerSlot, const Slice&, const std::string& socket,
                        const Paths&, const std::vector<unsigned>& minors);
// Also removes it if there is none.
void remove_cdi(const std::string& directory, ContainerSlot);

// Returns what a container of the slot gets, for a runtime that does not read the slot's file.
api::SlotFiles slot_files(ContainerSlot, const std::string& socket, const Paths&,
                          const std::vector<unsigned>& minors);

}  // namespace carve::node
