// Unix sockets: listening on a path, and knowing who is at the other end.
//
// SO_PEERCRED alone gives a number, and the number may belong to somebody else by the time it is looked up.
// SO_PEERPIDFD (Linux 6.5) gives the process that connected, dead or alive. Before 6.5 we open a pidfd for
// the number and demand that the process had started before the connection was accepted and still is the
// same.
#pragma once

#include <string>

#include "core/failure.h"
#include "node/os/fd.h"
#include "node/os/process.h"

namespace carve::node {

inline constexpr size_t max_socket_path_bytes = 107;  // sockaddr_un::sun_path without its NUL.

// Takes over a socket that nobody listens on any more; refuses to remove anything that is no socket.
Outcome<Fd> listen_at(const std::string& path, int type, unsigned mode);
Outcome<Fd> connect_to(const std::string& path, int type);

struct Peer {
  ProcessId process;
  Fd pidfd;
  uint32_t uid = 0;
};
// Nothing where the peer has ended.
std::optional<Peer> peer_of(int socket);

// One datagram with up to 8 descriptors.
bool send_with(int socket, const void* data, size_t size, const int* fds, size_t count);
// Bytes received, or -1; larger datagrams are reported with their true size. Descriptors beyond `most` are
// closed by the kernel.
ssize_t receive_with(int socket, void* data, size_t size, Fd* fds, size_t most);

}  // namespace carve::node
