#include "kubernetes/api/client/testing/api_server_socket.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>

#include "core/invariant.h"
#include "os/tcp.h"

namespace carve::kubernetes {
namespace {

// Returns the value of a header. Empty if absent. Names must be spelled as libcurl sends them.
std::string header(const std::string& head, const std::string& name) {
  const size_t begin = head.find("\r\n" + name + ": ");
  if (begin == std::string::npos) return "";
  const size_t value = begin + name.size() + 4;
  return head.substr(value, head.find("\r\n", value) - value);
}

}  // namespace

// One connection, with one request at a time.
class ApiServerSocket::Connection final : public std::enable_shared_from_this<Connection> {
 public:
  Connection(ApiServerSocket& socket, std::unique_ptr<http::Transport> transport)
      : socket_(&socket), transport_(std::move(transport)) {}

  int fd() const { return transport_->fd(); }
  void freeze() {
    is_frozen_ = true;
    socket_->loop_.watch_for(fd(), 0);
  }
  void close() {
    if (socket_ == nullptr) return;
    ApiServerSocket& socket = *socket_;
    const auto self = shared_from_this();
    socket_ = nullptr;
    reply_.reset();
    socket.loop_.forget(fd());
    socket.connections_.erase(fd());
    transport_.reset();
  }

  void act() {
    const auto self = shared_from_this();
    char bytes[16384];
    while (socket_ != nullptr && !is_frozen_) {
      const http::Transport::Moved moved = transport_->read(bytes);
      if (moved.bytes == 0 && moved.until == http::Transport::Until::closed) return close();
      if (moved.bytes == 0) break;
      in_.append(bytes, moved.bytes);
    }
    while (socket_ != nullptr && !is_frozen_ && take_request()) continue;
    flush();
  }

  void answer(unsigned status, const std::string& body, unsigned retry_after_seconds) {
    const std::string retry =
        retry_after_seconds > 0 ? fmt::format("Retry-After: {}\r\n", retry_after_seconds) : std::string();
    write(fmt::format("HTTP/1.1 {} X\r\nContent-Type: application/json\r\n{}Content-Length: {}\r\n\r\n{}",
                      status, retry, body.size(), body));
    reply_.reset();
  }
  void begin() {
    write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
  }
  void send(const std::string& bytes) { write(fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes)); }
  void end() {
    write("0\r\n\r\n");
    reply_.reset();
  }
  void lose() {
    flush();
    close();
  }

 private:
  bool take_request() {
    const size_t end = in_.find("\r\n\r\n");
    if (end == std::string::npos || reply_) return false;
    const std::string head = in_.substr(0, end + 2), length = header(head, "Content-Length");
    const size_t body_bytes = length.empty() ? 0 : std::stoul(length);
    if (in_.size() < end + 4 + body_bytes) return false;
    const size_t first = head.find(' '), second = head.find(' ', first + 1);
    const std::string authorization = header(head, "Authorization");
    const ApiServerFake::Request request{
        .method = head.substr(0, first),
        .target = head.substr(first + 1, second - first - 1),
        .body = in_.substr(end + 4, body_bytes),
        .content_type = header(head, "Content-Type"),
        .accept = header(head, "Accept"),
        .token = authorization.starts_with("Bearer ") ? authorization.substr(7) : ""};
    in_.erase(0, end + 4 + body_bytes);
    if (!socket_->raw_answer.empty()) {
      write(socket_->raw_answer);
      close();
      return false;
    }
    const auto reply = std::make_shared<Reply>(shared_from_this());
    reply_ = reply;
    socket_->server_.handle(request, reply);
    return true;
  }
  // The server's side of a request. Its destruction ends a watch of the fake.
  class Reply final : public ApiServerFake::Exchange {
   public:
    explicit Reply(std::weak_ptr<Connection> connection) : connection_(std::move(connection)) {}
    void answer(unsigned status, const std::string& body, unsigned retry_after_seconds) override {
      pass([&](Connection& connection) { connection.answer(status, body, retry_after_seconds); });
    }
    void begin() override { pass(&Connection::begin); }
    void send(const std::string& bytes) override {
      pass([&](Connection& connection) { connection.send(bytes); });
    }
    void end() override { pass(&Connection::end); }
    void lose() override { pass(&Connection::lose); }

   private:
    void pass(const std::function<void(Connection&)>& act) const {
      if (const auto connection = connection_.lock()) act(*connection);
    }
    std::weak_ptr<Connection> connection_;
  };

  void write(const std::string& bytes) {
    if (socket_ == nullptr) return;
    out_ += bytes;
    flush();
  }
  void flush() {
    if (socket_ == nullptr || is_frozen_) return;
    while (!out_.empty()) {
      const http::Transport::Moved moved = transport_->write(out_);
      if (moved.bytes == 0 && moved.until == http::Transport::Until::closed) return close();
      if (moved.bytes == 0) break;
      out_.erase(0, moved.bytes);
    }
    socket_->loop_.watch_for(fd(), out_.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT);
  }

  ApiServerSocket* socket_;  // Null if the socket is closed.
  std::unique_ptr<http::Transport> transport_;
  std::shared_ptr<Reply> reply_;  // The reply to the current request.
  std::string in_, out_;
  bool is_frozen_ = false;
};

ApiServerSocket::ApiServerSocket(os::Loop& loop, ApiServerFake& server, MakeTransport make)
    : loop_(loop), server_(server), make_(std::move(make)) {
  os::TcpAddress address{.host = "127.0.0.1", .port = 0};
  auto listener = os::listen_at(address);
  invariant(listener.has_value());
  listener_ = std::move(*listener);
  port_ = address.port;
  loop_.watch(listener_.get(), EPOLLIN, [this](uint32_t) { accept(); });
}

ApiServerSocket::~ApiServerSocket() {
  close_connections();
  loop_.forget(listener_.get());
}

void ApiServerSocket::accept() {
  os::Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd) return;
  const int on = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ++accepted_;
  const int number = fd.get();
  const auto connection = std::make_shared<Connection>(*this, make_(std::move(fd)));
  connections_[number] = connection;
  loop_.watch(number, EPOLLIN, [weak = std::weak_ptr<Connection>(connection)](uint32_t) {
    if (const auto alive = weak.lock()) alive->act();
  });
}

void ApiServerSocket::close_connections() {
  for (const auto& [fd, connection] : std::map(connections_)) connection->close();
}

void ApiServerSocket::freeze_connections() {
  for (const auto& [fd, connection] : connections_) connection->freeze();
}

}  // namespace carve::kubernetes
