// The attach socket: SOCKET.attach, open to every user and mounted into containers. A connection carries one
// request and one reply and is then closed (wire/shm/attach.h). The kernel identifies the caller. The request
// is checked byte by byte and cannot name another process.
//
// The guest library sends its request when it connects, and each request is answered before the next
// connection is accepted. So connections stay open only for silent peers and for those whose process must be
// inspected first: at most 128 in total and 8 per user, for 2 s each. Beyond that the oldest connection is
// closed, either the user's own or that of the user with the most.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "node/agent/agent.h"
#include "os/loop.h"

namespace carve::node {

// Returns the request in a datagram of `received` bytes (its untruncated size); no value if the connection
// must be closed. If a later library sends a longer request, only the known part is read.
std::optional<shm::AttachRequest> parse_attach_request(const void* data, ssize_t received);

class AttachServer {
 public:
  // `point` is the attach point in whose directory the socket is; no value for the common attach socket.
  AttachServer(os::Loop& loop, Agent& agent, os::Fd listener, std::optional<AttachPoint> point = {});
  ~AttachServer();  // Must not be called from one of its callbacks.
  AttachServer(const AttachServer&) = delete;
  AttachServer& operator=(const AttachServer&) = delete;

  // Accepts connections from this socket instead of the previous one. Existing connections stay open.
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
  const std::optional<AttachPoint> point_;
  std::shared_ptr<const int> lives_ = std::make_shared<const int>();  // The loop's timers check it.
  std::map<int, Connection> connections_;
  uint64_t accepted_ = 0;
};

}  // namespace carve::node
