// The attach socket: SOCKET.attach, open to every user and mounted into containers. A connection has one
// request and one reply, then it closes (wire/shm/attach.h). The kernel identifies the caller. The request is
// checked byte by byte and cannot name another process.
//
// The guest library sends its request when it connects, and each request is answered before the next
// connection is accepted. So only silent peers, and those whose answer needs a look at their process, keep a
// connection: 128 at once and 8 of one user, for 2 s each. Beyond that the oldest gives way: the user's own,
// or that of the user with most.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "node/agent/agent.h"
#include "os/loop.h"

namespace carve::node {

// Returns the request in a datagram of `received` bytes (its true size), or no value if the connection must
// close. Of a longer request, from a later library, the known part is read.
std::optional<shm::AttachRequest> parse_attach_request(const void* data, ssize_t received);

class AttachServer {
 public:
  // `slot`: whose attach directory the listener is in; none: the common attach socket.
  AttachServer(os::Loop& loop, Agent& agent, os::Fd listener, std::optional<ContainerSlot> slot = {});
  ~AttachServer();  // Not from a callback of its own.
  AttachServer(const AttachServer&) = delete;
  AttachServer& operator=(const AttachServer&) = delete;

  // Accepts connections from this socket in place of the former one. Present connections stay.
  void listen_at(os::Fd listener);

 private:
  void accept_some();
  bool has(int connection, uint64_t accepted) const;
  int oldest_of(uint32_t uid) const;
  int oldest_of_largest_user() const;
  void make_room(uint32_t uid);
  void read(int connection);
  void answer(int connection);
  void close(int connection);

  struct Connection {
    os::Fd fd;
    os::Peer peer;
    uint64_t number;
    std::optional<shm::AttachRequest> request;
  };
  os::Loop& loop_;
  Agent& agent_;
  os::Fd listener_;
  const std::optional<ContainerSlot> slot_;
  std::shared_ptr<const int> lives_ = std::make_shared<const int>();  // The loop's timers look at it.
  std::map<int, Connection> connections_;
  uint64_t accepted_ = 0;
};

}  // namespace carve::node
