// The claims of an agent on its devices, which ensure that only one agent of a user serves a device, whatever
// its state directory and socket.
//
// A claim is a lock (flock) on a file that only its user can open, so no other user can take it first. Root's
// files are in /run/carve/claims; those of another user are in the folder of its default socket. An ordinary
// user's agent also respects root's claims, which /proc/locks shows. Root's agent ignores those of other
// users, because any user may make them; it treats programs in slices of a user's agent as unmanaged
// processes. Agents of two ordinary users do not see each other's claims.
//
// The claim on a simulated set is a file in the set's folder.
#pragma once

#include <string>
#include <vector>

#include "core/device.h"
#include "core/failure.h"
#include "node/options.h"
#include "os/fd.h"

namespace carve::node {

inline constexpr const char* root_claims = "/run/carve/claims";

// Returns the folder with this user's claims.
std::string claims_folder(const Surroundings&);

// Claims the devices for the lifetime of the process. `folder` is this user's folder. Claims in root's
// folder, `roots`, are respected if it is a different one.
Outcome<std::vector<os::Fd>> claim(const std::vector<Device>& devices, const std::string& folder,
                                   const std::string& roots = root_claims);

// Claims the devices of a simulated set, which several states may use.
Outcome<std::vector<os::Fd>> claim_set(const std::string& set);

}  // namespace carve::node
