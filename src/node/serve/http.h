// An HTTP/1.1 server over a unix socket (or, for metrics, TCP), as small as the API needs. A connection has
// one request at a time, with whole bodies, without upgrade and without pipelining. Beast parses (in http.cc
// only); the loop reads and writes.
//
// Limits: 64 KiB of body, 8 KiB of header, 128 connections, 10 s from the first byte of a request to its
// last, 30 s between requests.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "node/os/loop.h"
#include "node/os/socket.h"

namespace carve::node {

struct HttpRequest {
  std::string method;  // "GET"
  std::string path;    // "/v1/slices/a", without the query.
  std::string query;   // "all=true"
  std::string body;
};

struct HttpResponse {
  unsigned status = 200;
  std::string type = "application/json";
  std::string body;
};

using HttpHandler = std::function<HttpResponse(const HttpRequest&, Peer&)>;

// Turns received bytes into requests and answers. It has no socket, so that a test and a fuzzer can drive it.
class HttpConversation {
 public:
  HttpConversation();
  ~HttpConversation();

  // Takes more bytes and appends the bytes to send to `out`. Returns false if the connection must then close.
  bool receive(std::string_view bytes, const std::function<HttpResponse(const HttpRequest&)>& handler,
               std::string& out);
  bool within_request() const;

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
  std::string pending_;
};

class HttpServer {
 public:
  // `local`: a unix socket, where the kernel identifies the peer. For other sockets the Peer is empty and has
  // no rights.
  HttpServer(Loop& loop, Fd listener, HttpHandler handler, bool local = true);
  ~HttpServer();

 private:
  struct Connection;
  void accept_all();
  void ready(int fd, uint32_t events);
  void send(Connection&);
  void close(int fd);
  void look_for_idle();

  Loop& loop_;
  Fd listener_;
  HttpHandler handler_;
  bool local_;
  std::map<int, std::unique_ptr<Connection>> connections_;
};

}  // namespace carve::node
