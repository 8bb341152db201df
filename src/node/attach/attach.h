// The attach socket: SOCKET.attach, open to every user and mounted into containers. One request, one reply,
// and the connection closes (wire/shm/attach.h). Who asks is the kernel's answer; what the request says is
// checked byte by byte and names nobody.
//
// Limits: 128 connections at once, 2 s each; more wait in the kernel's queue.
#pragma once

#include <map>
#include <optional>

#include "node/agent/agent.h"

namespace carve::node {

// The request in a datagram of `received` bytes (its true size), or nothing: hang up. A longer one from a
// later library is read as far as we know it.
std::optional<shm::AttachRequest> parse_attach_request(const void* data, ssize_t received);

class AttachServer {
 public:
  AttachServer(Loop& loop, Agent& agent, Fd listener);

 private:
  void accept_all();
  void answer(int connection);
  void close(int connection);

  struct Connection {
    Fd fd;
    Peer peer;
    uint64_t number;
  };
  Loop& loop_;
  Agent& agent_;
  Fd listener_;
  std::map<int, Connection> connections_;
  uint64_t accepted_ = 0;
};

}  // namespace carve::node
