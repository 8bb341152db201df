// The attach socket: SOCKET.attach, open to every user and mounted into containers. A connection has one
// request and one reply, then it closes (wire/shm/attach.h). The kernel identifies the caller. The request is
// checked byte by byte and cannot name another process.
//
// Limits: 128 connections at once, 2 s each; further ones wait in the kernel's queue.
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

 private:
  void accept_all();
  void answer(int connection);
  void close(int connection);

  struct Connection {
    os::Fd fd;
    os::Peer peer;
    uint64_t number;
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
