// TCP addresses as options, and listening. Names are not looked up, so addresses must be numeric.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/failure.h"
#include "os/fd.h"

namespace carve::os {

struct TcpAddress {
  std::string host;   // "127.0.0.1", "::1"
  uint16_t port = 0;  // 0 means any free port.
};

// Parses "127.0.0.1:9400" or "[::1]:0". Returns no value for other text.
std::optional<TcpAddress> parse_tcp_address(const std::string& text);

// Returns "127.0.0.1:9400" or "[::1]:9400".
std::string text(const TcpAddress&);

bool is_loopback(const TcpAddress&);

// Listens. A port of 0 is replaced with the port that the kernel chose.
Outcome<Fd> listen_at(TcpAddress&);

// Returns the uid of the process at the other end of an accepted TCP connection, if its socket is on this
// machine and in this network namespace. Otherwise, or if the process has closed the socket, returns no
// value. The kernel responds immediately (sock_diag(7)), for every user's sockets.
std::optional<uint32_t> uid_of_local_peer(int socket);

}  // namespace carve::os
