// An HTTP/1.1 server over a unix socket or TCP, as small as the APIs need. A connection has one request at a
// time, with whole bodies, without upgrade and without pipelining. Beast parses (in server.cc only); the loop
// reads and writes. It knows no API: the program that serves makes all responses.
//
// Limits: 64 KiB of body, 8 KiB of header, 128 connections, 10 s from the first byte of a request to its
// last, 30 s between requests.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "http/caller.h"
#include "os/fd.h"
#include "os/loop.h"

namespace carve::http {

struct Request {
  std::string method;  // "GET"
  std::string path;    // "/v1/slices/a", without the query.
  std::string query;   // "all=true"
  std::string body;
};

struct Response {
  unsigned status = 200;
  std::string type = "application/json";
  std::string body;
};

using Handler = std::function<Response(const Request&, const Caller&)>;
// Makes the response to bytes that are no request, with the status and a sentence: 400, 413 or 431.
using Refuse = std::function<Response(unsigned status, std::string detail)>;
// Identifies the caller of a new connection; no value closes it.
using Identify = std::function<std::optional<Caller>(int socket)>;

// Turns received bytes into requests and answers. It has no socket, so that a test and a fuzzer can drive it.
class Conversation {
 public:
  explicit Conversation(Refuse refuse);
  ~Conversation();
  Conversation(Conversation&&) noexcept;
  Conversation& operator=(Conversation&&) = delete;

  // Takes more bytes and appends the bytes to send to `out`. Returns false if the connection must then close.
  bool receive(std::string_view bytes, const std::function<Response(const Request&)>& handler,
               std::string& out);
  bool within_request() const;

 private:
  struct Parser;
  Refuse refuse_;
  std::unique_ptr<Parser> parser_;
  std::string pending_;
};

class Server {
 public:
  // What the program that serves decides. Without `identify` every caller is anonymous.
  struct Hooks {
    Handler handle;
    Refuse refuse;
    Identify identify = nullptr;
  };
  Server(os::Loop& loop, os::Fd listener, Hooks hooks);
  ~Server();

 private:
  struct Connection;
  void accept_all();
  void ready(int fd, uint32_t events);
  void send(Connection&);
  void close(int fd);
  void look_for_idle();

  os::Loop& loop_;
  os::Fd listener_;
  Hooks hooks_;
  std::map<int, std::unique_ptr<Connection>> connections_;
};

}  // namespace carve::http
