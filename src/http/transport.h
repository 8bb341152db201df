// Reads and writes the bytes of one connection for the server: a plain socket, or TLS over a socket (tls/).
// No call blocks. If no byte could be transferred, the result is the event for which the loop has to wait.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "os/fd.h"

namespace carve::http {

class Transport {
 public:
  enum class Until : uint8_t { readable, writable, closed };
  struct Moved {
    size_t bytes = 0;
    Until until = Until::closed;  // Valid if `bytes` is 0.
  };

  virtual ~Transport() = default;
  virtual int fd() const = 0;
  virtual Moved read(std::span<char> into) = 0;
  virtual Moved write(std::string_view from) = 0;
  // Returns false until the handshake of an encrypted connection has completed. Until then read() and write()
  // transfer no bytes.
  virtual bool is_established() const { return true; }
};

std::unique_ptr<Transport> plain_transport(os::Fd socket);

}  // namespace carve::http
