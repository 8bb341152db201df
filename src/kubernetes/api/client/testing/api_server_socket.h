// ApiServerFake over HTTP/1.1 on 127.0.0.1, with or without TLS, in the test's loop.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "http/transport.h"
#include "kubernetes/api/testing/api_server_fake.h"
#include "os/loop.h"

namespace carve::kubernetes {

class ApiServerSocket {
 public:
  using MakeTransport = std::function<std::unique_ptr<http::Transport>(os::Fd)>;
  // `make` returns a connection's transport: plain, or that of tls::Identity::accept().
  ApiServerSocket(os::Loop&, ApiServerFake&, MakeTransport make = http::plain_transport);
  ~ApiServerSocket();
  ApiServerSocket(const ApiServerSocket&) = delete;
  ApiServerSocket& operator=(const ApiServerSocket&) = delete;

  uint16_t port() const { return port_; }
  uint64_t accepted() const { return accepted_; }  // Number of connections so far.
  size_t open() const { return connections_.size(); }
  void close_connections();
  // Makes the open connections seem dead: they stay open, but nothing is read from them or sent over them.
  void freeze_connections();

  // If not empty, these bytes are sent in response to every request, and the connection is closed.
  std::string raw_answer;

 private:
  class Connection;
  friend class Connection;

  void accept();

  os::Loop& loop_;
  ApiServerFake& server_;
  const MakeTransport make_;
  os::Fd listener_;
  uint16_t port_ = 0;
  uint64_t accepted_ = 0;
  std::map<int, std::shared_ptr<Connection>> connections_;  // By file descriptor.
};

}  // namespace carve::kubernetes
