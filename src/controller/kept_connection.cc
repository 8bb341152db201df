#include "controller/kept_connection.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <utility>
#include <vector>

#include "os/server_identity.h"
#include "os/socket.h"

namespace carve::controller {
namespace {

namespace beast = boost::beast;

constexpr size_t max_begun_requests = 8;  // A server takes at most 16 at a time (http/conversation.cc).
constexpr size_t max_body_bytes = 64 << 10;
constexpr size_t max_unparsed_bytes = 16 << 10;  // More than the longest header.

}  // namespace

struct KeptConnection::Parser {
  beast::http::response_parser<beast::http::dynamic_body> beast;
  Parser() {
    beast.body_limit(max_body_bytes);
    beast.eager(true);
  }
  std::optional<std::string> body() const {
    if (beast.get().result_int() != 200) return std::nullopt;
    return beast::buffers_to_string(beast.get().body().data());
  }
};

KeptConnection::KeptConnection(os::Loop& loop, std::string socket) : loop_(loop), path_(std::move(socket)) {}

KeptConnection::~KeptConnection() {
  if (socket_) loop_.forget(socket_.get());
}

bool KeptConnection::get(std::string target, int64_t now_ns, std::weak_ptr<void> wanted, Then then) {
  if (!socket_ && !connect()) return false;
  requests_.push_back(
      {.target = std::move(target), .made_ns = now_ns, .wanted = std::move(wanted), .then = std::move(then)});
  send_some();
  return true;
}

size_t KeptConnection::give_up(int64_t before_ns) {
  std::vector<Then> late;
  for (Request& request : requests_)
    if (request.made_ns < before_ns && request.then) late.push_back(std::exchange(request.then, nullptr));
  // The other requests were not sent.
  const auto unsent = requests_.begin() + static_cast<ptrdiff_t>(begun_);
  requests_.erase(std::remove_if(unsent, requests_.end(), [](const Request& r) { return !r.then; }),
                  requests_.end());
  for (const Then& then : late) then(std::nullopt);
  return late.size();
}

bool KeptConnection::connect() {
  auto socket = os::connect_to(path_, SOCK_STREAM | SOCK_NONBLOCK);
  if (!socket || os::untrusted_server(socket->get())) return false;
  socket_ = std::move(*socket);
  loop_.watch(socket_.get(), EPOLLIN, [this](uint32_t) { receive(); });
  return true;
}

// The kernel normally accepts the bytes of a few requests. If it does not, the rest is sent after a response.
// A lost connection is noticed by the next read.
void KeptConnection::send_some() {
  while (begun_ < std::min(requests_.size(), max_begun_requests)) {
    const auto next = requests_.begin() + static_cast<ptrdiff_t>(begun_);
    if (next->wanted.expired()) {
      requests_.erase(next);
      continue;
    }
    unsent_ += fmt::format("GET {} HTTP/1.1\r\nHost: carve\r\n\r\n", next->target);
    ++begun_;
  }
  if (unsent_.empty()) return;
  const ssize_t n = send(socket_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n > 0) unsent_.erase(0, static_cast<size_t>(n));
}

void KeptConnection::receive() {
  char bytes[4096];
  const ssize_t n = recv(socket_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n > 0) {
    received_.append(bytes, static_cast<size_t>(n));
    if (take_responses()) return send_some();
  }
  reconnect();
}

// Calls back for each complete response. Returns false if no further response can arrive on this connection.
bool KeptConnection::take_responses() {
  while (!received_.empty()) {
    if (begun_ == 0) return false;  // Nothing was requested.
    if (!parser_) parser_ = std::make_unique<Parser>();
    boost::system::error_code error;
    const size_t used = parser_->beast.put(boost::asio::buffer(received_), error);
    received_.erase(0, used);
    if (error == beast::http::error::need_more) return received_.size() < max_unparsed_bytes;
    if (error) return false;
    if (!parser_->beast.is_done()) continue;
    const auto parser = std::exchange(parser_, nullptr);
    const Request request = std::move(requests_.front());
    requests_.pop_front();
    --begun_;
    ++responses_;
    if (request.then) request.then(parser->body());
    if (!parser->beast.keep_alive()) return false;
  }
  return true;
}

void KeptConnection::reconnect() {
  loop_.forget(socket_.get());
  socket_ = {};
  parser_.reset();
  received_.clear();
  unsent_.clear();
  begun_ = 0;
  const bool was_served = std::exchange(responses_, 0) > 0;
  std::erase_if(requests_, [](const Request& request) { return !request.then; });
  if (requests_.empty()) return;
  if (was_served && connect()) return send_some();
  for (const Request& request : std::exchange(requests_, {})) request.then(std::nullopt);
}

}  // namespace carve::controller
