#include "node/serve/http.h"

#include <sys/socket.h>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http.hpp>

#include "node/os/clock.h"
#include "wire/api/documents.h"

namespace carve::node {
namespace {

namespace http = boost::beast::http;

constexpr size_t max_connections = 128;
constexpr size_t max_body_bytes = 64 << 10;
constexpr size_t max_header_bytes = 8 << 10;
// "0", an empty line, and its own end. Boost.Beast requires so many bytes of the last chunk in its buffer
// (1.74.0, an assertion in basic_parser::parse_chunk_header). No chunked body is complete with fewer bytes
// left.
constexpr size_t min_chunked_end_bytes = 5;
constexpr int64_t request_patience = 10 * second;
constexpr int64_t idle_patience = 30 * second;

std::string written(const HttpResponse& answer, bool keep) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nServer: carved\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: "
      "{}\r\n\r\n{}",
      answer.status, std::string(http::obsolete_reason(http::int_to_status(answer.status))), answer.type,
      answer.body.size(), keep ? "keep-alive" : "close", answer.body);
}

HttpResponse refused(unsigned status, const std::string& detail) {
  api::Problem problem;
  problem.type = "carve:invalid-argument";
  problem.title = "invalid argument";
  problem.status = status;
  problem.detail = detail;
  return {status, "application/problem+json", api::write(problem)};
}

}  // namespace

struct HttpConversation::Parser {
  http::request_parser<http::string_body> beast;
  Parser() {
    beast.body_limit(max_body_bytes);
    beast.header_limit(max_header_bytes);
    beast.eager(true);
  }
};

HttpConversation::HttpConversation() : parser_(std::make_unique<Parser>()) {}
HttpConversation::~HttpConversation() = default;

bool HttpConversation::within_request() const { return !pending_.empty() || parser_->beast.got_some(); }

bool HttpConversation::receive(std::string_view bytes,
                               const std::function<HttpResponse(const HttpRequest&)>& handler,
                               std::string& out) {
  pending_ += bytes;
  for (int requests = 0; requests < 16; ++requests) {
    auto& beast = parser_->beast;
    while (!beast.is_done() && !pending_.empty()) {
      if (beast.is_header_done() && beast.chunked() && pending_.size() < min_chunked_end_bytes) return true;
      boost::system::error_code error;
      const size_t used = beast.put(boost::asio::buffer(pending_), error);
      pending_.erase(0, used);
      if (error == http::error::need_more) {
        if (pending_.size() <= max_header_bytes) return true;
        error = http::error::header_limit;
      }
      if (error == http::error::body_limit)
        out += written(
            refused(413, fmt::format("the request body is too large; use at most {} bytes", max_body_bytes)),
            false);
      else if (error == http::error::header_limit)
        out += written(refused(431, fmt::format("the request header is too large; use at most {} bytes",
                                                max_header_bytes)),
                       false);
      else if (error)
        out += written(refused(400, "the request is not HTTP/1.1:  " + error.message()), false);
      if (error) return false;
    }
    if (!beast.is_done()) return true;

    const auto& message = beast.get();
    const std::string target(message.target());
    const size_t question = std::min(target.find('?'), target.size());
    HttpRequest request{std::string(message.method_string()), target.substr(0, question),
                        question < target.size() ? target.substr(question + 1) : "", message.body()};
    const bool keep = message.keep_alive();
    out += written(handler(request), keep);
    if (!keep) return false;
    parser_ = std::make_unique<Parser>();
    if (pending_.empty()) return true;
  }
  return false;  // The client sends requests without reading the answers.
}

struct HttpServer::Connection {
  Fd fd;
  Peer peer;
  HttpConversation conversation;
  std::string out;
  bool closing = false;
  int64_t since = 0;  // Begin of the request that is being read, or end of the last answer (CLOCK_MONOTONIC,
                      // ns).
};

HttpServer::HttpServer(Loop& loop, Fd listener, HttpHandler handler, bool local)
    : loop_(loop), listener_(std::move(listener)), handler_(std::move(handler)), local_(local) {
  loop_.watch(listener_.get(), EPOLLIN, [this](uint32_t) { accept_all(); });
  loop_.every(second, [this] { look_for_idle(); });
}

HttpServer::~HttpServer() = default;

void HttpServer::accept_all() {
  while (connections_.size() < max_connections) {
    Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return;
    auto peer = local_ ? peer_of(fd.get()) : std::optional<Peer>(std::in_place);
    if (!peer) continue;
    const int number = fd.get();
    auto connection = std::make_unique<Connection>();
    connection->fd = std::move(fd);
    connection->peer = std::move(*peer);
    connection->since = monotonic_ns();
    connections_.emplace(number, std::move(connection));
    loop_.watch(number, EPOLLIN, [this, number](uint32_t events) { ready(number, events); });
  }
  loop_.forget(listener_.get());
}

void HttpServer::close(int fd) {
  loop_.forget(fd);
  const bool full = connections_.size() >= max_connections;
  connections_.erase(fd);
  if (full) loop_.watch(listener_.get(), EPOLLIN, [this](uint32_t) { accept_all(); });
}

void HttpServer::look_for_idle() {
  const int64_t now = monotonic_ns();
  std::vector<int> late;
  for (const auto& [fd, c] : connections_) {
    const bool busy = c->conversation.within_request() || !c->out.empty();
    if (now - c->since > (busy ? request_patience : idle_patience)) late.push_back(fd);
  }
  for (const int fd : late) close(fd);
}

void HttpServer::ready(int fd, uint32_t events) {
  Connection& c = *connections_.at(fd);
  if (events & EPOLLOUT) return send(c);
  char buffer[16384];
  const ssize_t n = recv(fd, buffer, sizeof buffer, 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return close(fd);
  if (!c.conversation.within_request()) c.since = monotonic_ns();
  c.closing = !c.conversation.receive(
      {buffer, static_cast<size_t>(n)}, [&](const HttpRequest& request) { return handler_(request, c.peer); },
      c.out);
  if (c.closing || !c.out.empty()) send(c);
}

void HttpServer::send(Connection& c) {
  const int fd = c.fd.get();
  while (!c.out.empty()) {
    const ssize_t n = ::send(fd, c.out.data(), c.out.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return loop_.watch_for(fd, EPOLLOUT);
    if (n <= 0) return close(fd);
    c.out.erase(0, static_cast<size_t>(n));
  }
  c.since = monotonic_ns();
  if (c.closing) return close(fd);
  loop_.watch_for(fd, EPOLLIN);
}

}  // namespace carve::node
