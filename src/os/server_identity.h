// Checks which user's process serves a unix socket. A client sends requests, and accepts environments and
// descriptors, only if the server is root, the client's own user, or a configured trusted user. A path by
// itself proves nothing: in a folder like /tmp, the first process to claim a name gets it.
//
// SO_PEERCRED of a connected socket has the uid of the process that called listen().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace carve::os {

// The environment variable with the uids of additional trusted servers: "1000" or "1000,1001".
inline constexpr const char* trusted_uids_variable = "CARVE_TRUSTED_UIDS";

// A server's credentials as the kernel reports them, in the client's namespaces.
struct ServerCredentials {
  uint32_t uid = 0;
  int pid = 0;  // 0 if it is outside the client's pid namespace.
};

// The client's own uid, and its view of uids.
struct ClientUids {
  uint32_t effective = 0;
  std::string uid_map;              // /proc/self/uid_map
  uint32_t overflow = 65534;        // The uid that is shown in place of a uid without a mapping.
  std::optional<uint32_t> service;  // The service user of the server's program.
  std::string_view trusted;         // The value of CARVE_TRUSTED_UIDS.
};

// Returns whether the client trusts the server. A server outside the client's user namespace has no uid
// there. No process of the namespace can pretend to be such a server.
bool is_trusted(const ServerCredentials&, const ClientUids&);

// Returns the uid of the server of a connected socket if this process does not trust it, or no value if this
// process trusts it. `service_user` is the name of an additional trusted user, or null.
std::optional<uint32_t> untrusted_server(int socket, const char* service_user = nullptr);

// Returns "uid 1000 (ada), which is neither root nor this user; set CARVE_TRUSTED_UIDS=1000 to trust it".
std::string distrust_message(uint32_t uid);

}  // namespace carve::os
