// Presents slices to container runtimes as devices, with one CDI file per slice (Container Device Interface
// specification 0.3.0, the oldest version with kind, devices, mounts, env and hooks; podman 4.3 supports it).
// For `podman run --device carve.dev/slice=NAME IMAGE` the runtime mounts the guest library as the CUDA
// driver in front of the real one, and the attach directory. It calls `carve hook NAME` before the program
// starts.
#pragma once

#include <string>
#include <vector>

#include "core/attach_point.h"
#include "core/failure.h"
#include "core/slice.h"
#include "os/fd.h"
#include "wire/api/slice.h"

namespace carve::node {

// Paths on this node.
struct Paths {
  std::string programs;  // The directory of carve and carved.
  std::string preload;   // Path of libcarve.so.
  std::string shims;     // The directory of the two shims.
  std::string driver;    // The directory of the driver's libraries; empty to let the loader find them.
  std::string sim_set;   // The simulated set's directory; empty for real devices.
  std::string sim_spec;  // "a10x2". Empty for real devices.
  std::string libcuda = "libcuda.so.1";
  std::string libnvml = "libnvidia-ml.so.1";
  std::string driver_root;  // Where the host's root is mounted for the agent; empty on the host.
};

inline constexpr const char* cdi_kind = "carve.dev/slice";
inline constexpr const char* slot_cdi_kind = "carve.dev/slot";
inline constexpr const char* claim_cdi_kind = "carve.dev/claim";

// Returns the attach directory, which is mounted into containers. It contains only the attach socket, under
// its default name. If the socket itself were mounted, a container would keep the socket of the agent that
// ran when the container started. The next agent's socket has another inode, so programs that start later in
// the container could not connect.
std::string attach_directory(const std::string& socket);

// Publishes the socket that now listens at `socket`.attach in the attach directory.
Outcome<void> publish_attach_socket(const std::string& socket);
// Returns whether the attach directory, or the directory of the attach point, contains the current attach
// socket.
bool is_attach_socket_published(const std::string& socket);
bool has_attach_socket(const std::string& socket, const AttachPoint&);

// The directory of one attach point, inside the common one. It remains the same directory across restarts of
// the agent, because containers have it mounted; only the socket in it is recreated.
std::string attach_directory(const std::string& socket, const AttachPoint&);

// Creates the directory of the attach point and a listening socket in it.
Outcome<os::Fd> listen_in(const std::string& socket, const AttachPoint&);
void remove_attach_directory(const std::string& socket, const AttachPoint&);

// Returns the file's text. `minors` contains N of /dev/nvidiaN for each device; it is empty if the devices
// are simulated.
std::string cdi_spec(const Slice&, const std::string& socket, const Paths&,
                     const std::vector<unsigned>& minors);

// Writes a new file and renames it, so that no runtime reads a partial one.
Outcome<void> write_cdi(const std::string& directory, const Slice&, const std::string& socket, const Paths&,
                        const std::vector<unsigned>& minors);
void remove_cdi(const std::string& directory, const std::string& slice);

// The same for a slot, which the device plugin gives to kubelet before its slice is known, and for a claim. No
// program is called when the container starts, and the attach point's own directory is mounted.
std::string cdi_spec(const AttachPoint&, const Slice&, const std::string& socket, const Paths&,
                     const std::vector<unsigned>& minors);
Outcome<void> write_cdi(const std::string& directory, const AttachPoint&, const Slice&,
                        const std::string& socket, const Paths&, const std::vector<unsigned>& minors);
// Succeeds even if there is no file.
void remove_cdi(const std::string& directory, const AttachPoint&);

// Returns the files for a container of the slot, for a runtime that does not read the slot's file.
api::SlotFiles slot_files(ContainerSlot, const std::string& socket, const Paths&,
                          const std::vector<unsigned>& minors);

}  // namespace carve::node
