// TCP: addresses in the form of options, and listening. Names are not looked up, so an address is numeric.
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

// Listens, and replaces port 0 with the port that the kernel chose.
Outcome<Fd> listen_at(TcpAddress&);

// Returns the uid of the process at the other end of an accepted TCP connection, if its socket is on this
// machine, in this network namespace. Returns no value otherwise, or if it has closed the socket. The kernel
// responds immediately (sock_diag(7)), for every user's sockets.
std::optional<uint32_t> uid_of_local_peer(int socket);

}  // namespace carve::os
