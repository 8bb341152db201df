// Unix sockets: listening on a path, and identifying the peer.
//
// SO_PEERCRED returns only a pid, which another process may have by the time of a look-up. SO_PEERPIDFD
// (Linux 6.5) returns the process that connected, also after its end. Before 6.5, a pidfd is opened for the
// pid. The process must have started before the connection was accepted and must still have the same start
// time.
#pragma once

#include <string>

#include "core/failure.h"
#include "os/fd.h"
#include "os/process.h"

namespace carve::os {

inline constexpr size_t max_socket_path_bytes = 107;  // sockaddr_un::sun_path without its NUL.

// Listens at the path. Replaces a socket on which no process listens, but removes no other file.
Outcome<Fd> listen_at(const std::string& path, int type, unsigned mode);
Outcome<Fd> connect_to(const std::string& path, int type);

// The process at the other end of a unix socket. There is no default value, because a peer is either
// identified or does not exist.
struct Peer {
  Peer(ProcessId which, Fd descriptor, uint32_t user)
      : process(which), pidfd(std::move(descriptor)), uid(user) {}
  ProcessId process;
  Fd pidfd;
  uint32_t uid;
};
// Returns the peer, or no value if it has ended.
std::optional<Peer> peer_of(int socket);
// Returns the uid of the peer of a unix socket with one system call, or no value for another kind of socket.
std::optional<uint32_t> uid_of_peer(int socket);
// Returns whether the peer of a unix socket was in the group when it connected: its effective group or one of its
// supplementary groups. The kernel keeps both, so the group database is not read.
bool is_peer_in_group(int socket, uint32_t gid);

// Sends one datagram with up to 8 descriptors.
bool send_with(int socket, const void* data, size_t size, const int* fds, size_t count);
// Returns the number of bytes received, or -1. The true size is returned even if the datagram is larger than
// `size`. The kernel closes descriptors beyond `most`.
ssize_t receive_with(int socket, void* data, size_t size, Fd* fds, size_t most);

}  // namespace carve::os
