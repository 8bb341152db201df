#include "http/server.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http.hpp>

#include "os/clock.h"

namespace carve::http {
namespace {

namespace beast_http = boost::beast::http;

constexpr size_t max_connections = 128;
constexpr size_t max_body_bytes = 64 << 10;
constexpr size_t max_header_bytes = 8 << 10;
// "0", an empty line, and its own end. Boost.Beast requires so many bytes of the last chunk in its buffer
// (1.74.0, an assertion in basic_parser::parse_chunk_header). No chunked body is complete with fewer bytes
// left.
constexpr size_t min_chunked_end_bytes = 5;
constexpr int64_t request_patience = 10 * os::second;
constexpr int64_t idle_patience = 30 * os::second;

std::string written(const Response& answer, bool keep) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nServer: carve\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: "
      "{}\r\n\r\n{}",
      answer.status, std::string(beast_http::obsolete_reason(beast_http::int_to_status(answer.status))),
      answer.type, answer.body.size(), keep ? "keep-alive" : "close", answer.body);
}

}  // namespace

struct Conversation::Parser {
  beast_http::request_parser<beast_http::string_body> beast;
  Parser() {
    beast.body_limit(max_body_bytes);
    beast.header_limit(max_header_bytes);
    beast.eager(true);
  }
};

Conversation::Conversation(Refuse refuse) : refuse_(std::move(refuse)), parser_(std::make_unique<Parser>()) {}
Conversation::~Conversation() = default;
Conversation::Conversation(Conversation&&) noexcept = default;

bool Conversation::within_request() const { return !pending_.empty() || parser_->beast.got_some(); }

bool Conversation::receive(std::string_view bytes, const std::function<Response(const Request&)>& handler,
                           std::string& out) {
  pending_ += bytes;
  for (int requests = 0; requests < 16; ++requests) {
    auto& beast = parser_->beast;
    while (!beast.is_done() && !pending_.empty()) {
      if (beast.is_header_done() && beast.chunked() && pending_.size() < min_chunked_end_bytes) return true;
      boost::system::error_code error;
      const size_t used = beast.put(boost::asio::buffer(pending_), error);
      pending_.erase(0, used);
      if (error == beast_http::error::need_more) {
        if (pending_.size() <= max_header_bytes) return true;
        error = beast_http::error::header_limit;
      }
      if (error == beast_http::error::body_limit)
        out += written(
            refuse_(413, fmt::format("the request body is too large; use at most {} bytes", max_body_bytes)),
            false);
      else if (error == beast_http::error::header_limit)
        out += written(refuse_(431, fmt::format("the request header is too large; use at most {} bytes",
                                                max_header_bytes)),
                       false);
      else if (error)
        out += written(refuse_(400, "the request is not HTTP/1.1: " + error.message()), false);
      if (error) return false;
    }
    if (!beast.is_done()) return true;

    const auto& message = beast.get();
    const std::string target(message.target());
    const size_t question = std::min(target.find('?'), target.size());
    Request request{std::string(message.method_string()), target.substr(0, question),
                    question < target.size() ? target.substr(question + 1) : "", message.body()};
    const bool keep = message.keep_alive();
    out += written(handler(request), keep);
    if (!keep) return false;
    parser_ = std::make_unique<Parser>();
    if (pending_.empty()) return true;
  }
  return false;  // The client sends requests without reading the answers.
}

struct Server::Connection {
  os::Fd fd;
  Caller caller;
  Conversation conversation;
  std::string out = {};
  bool closing = false;
  int64_t since = 0;  // Begin of the request that is being read, or end of the last answer (CLOCK_MONOTONIC,
                      // ns).
};

Server::Server(os::Loop& loop, os::Fd listener, Hooks hooks)
    : loop_(loop), listener_(std::move(listener)), hooks_(std::move(hooks)) {
  loop_.watch(listener_.get(), EPOLLIN, [this](uint32_t) { accept_all(); });
  loop_.every(os::second, [this] { look_for_idle(); });
}

Server::~Server() = default;

void Server::accept_all() {
  while (connections_.size() < max_connections) {
    os::Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return;
    auto caller = hooks_.identify ? hooks_.identify(fd.get()) : Caller();
    if (!caller) continue;
    const int number = fd.get();
    auto connection = std::make_unique<Connection>(Connection{
        .fd = std::move(fd), .caller = std::move(*caller), .conversation = Conversation(hooks_.refuse)});
    connection->since = os::monotonic_ns();
    connections_.emplace(number, std::move(connection));
    loop_.watch(number, EPOLLIN, [this, number](uint32_t events) { ready(number, events); });
  }
  loop_.forget(listener_.get());
}

void Server::close(int fd) {
  loop_.forget(fd);
  const bool full = connections_.size() >= max_connections;
  connections_.erase(fd);
  if (full) loop_.watch(listener_.get(), EPOLLIN, [this](uint32_t) { accept_all(); });
}

void Server::look_for_idle() {
  const int64_t now = os::monotonic_ns();
  std::vector<int> late;
  for (const auto& [fd, c] : connections_) {
    const bool busy = c->conversation.within_request() || !c->out.empty();
    if (now - c->since > (busy ? request_patience : idle_patience)) late.push_back(fd);
  }
  for (const int fd : late) close(fd);
}

void Server::ready(int fd, uint32_t events) {
  Connection& c = *connections_.at(fd);
  if (events & EPOLLOUT) return send(c);
  char buffer[16384];
  const ssize_t n = recv(fd, buffer, sizeof buffer, 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return close(fd);
  if (!c.conversation.within_request()) c.since = os::monotonic_ns();
  c.closing = !c.conversation.receive(
      {buffer, static_cast<size_t>(n)},
      [&](const Request& request) { return hooks_.handle(request, c.caller); }, c.out);
  if (c.closing || !c.out.empty()) send(c);
}

void Server::send(Connection& c) {
  const int fd = c.fd.get();
  while (!c.out.empty()) {
    const ssize_t n = ::send(fd, c.out.data(), c.out.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return loop_.watch_for(fd, EPOLLOUT);
    if (n <= 0) return close(fd);
    c.out.erase(0, static_cast<size_t>(n));
  }
  c.since = os::monotonic_ns();
  if (c.closing) return close(fd);
  loop_.watch_for(fd, EPOLLIN);
}

}  // namespace carve::http
