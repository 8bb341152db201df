#include "http/server.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>

namespace carve::http {
namespace {

constexpr int max_pieces_per_turn = 16;
constexpr size_t read_piece_bytes = 16 << 10;

// Returns the host of a caller's address ("127.0.0.1:53210"); empty: a caller of this machine.
std::string host_of(const Caller& caller) {
  const std::string address = caller.address();
  return address.substr(0, address.rfind(':'));
}

}  // namespace

struct Server::Connection {
  std::unique_ptr<Transport> transport;
  Caller caller;
  int64_t accepted_ns;
  Conversation conversation;

  Connection(Server& server, std::unique_ptr<Transport> over, Caller who, int64_t now_ns)
      : transport(std::move(over)),
        caller(std::move(who)),
        accepted_ns(now_ns),
        conversation({.handle = [&server, this](const Request& r) { return server.handle(r, caller); },
                      .refuse = server.hooks_.refuse,
                      .body_limit = server.hooks_.body_limit,
                      .wake = [&server, this] { server.wake(*this); },
                      .queue_bytes = server.hooks_.queue_bytes},
                     now_ns) {}
};

Server::Server(os::Loop& loop, os::Fd listener, Hooks hooks)
    : loop_(loop), listener_(std::move(listener)), hooks_(std::move(hooks)) {
  loop_.watch(listener_.get(), EPOLLIN, [this](uint32_t) { accept_all(); });
  loop_.every(os::second, [this] { tick(hooks_.now_ns()); });
}

Server::~Server() {
  loop_.forget(listener_.get());
  for (const auto& [fd, connection] : connections_) loop_.forget(fd);
}

void Server::accept_all() {
  while (connections_.size() < hooks_.connections) {
    os::Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return;
    auto caller = hooks_.identify ? hooks_.identify(fd.get()) : Caller();
    if (!caller) continue;
    const std::string host = host_of(*caller);
    if (has_too_many(host)) continue;
    auto transport = hooks_.transport(std::move(fd));
    if (!transport) continue;
    const int number = transport->fd();
    if (!host.empty()) ++from_host_[host];
    connections_.emplace(number, std::make_unique<Connection>(*this, std::move(transport), std::move(*caller),
                                                              hooks_.now_ns()));
    loop_.watch(number, EPOLLIN, [this, number](uint32_t) { move_bytes(number); });
  }
  loop_.forget(listener_.get());
}

bool Server::has_too_many(const std::string& host) const {
  const auto found = from_host_.find(host);
  return found != from_host_.end() && found->second >= hooks_.connections_from_address;
}

void Server::close(int fd) {
  loop_.forget(fd);
  const bool full = connections_.size() >= hooks_.connections;
  const auto found = connections_.find(fd);
  if (const auto host = from_host_.find(host_of(found->second->caller));
      host != from_host_.end() && --host->second == 0)
    from_host_.erase(host);
  connections_.erase(found);
  if (full) loop_.watch(listener_.get(), EPOLLIN, [this](uint32_t) { accept_all(); });
}

Response Server::handle(const Request& request, const Caller& caller) {
  Response response = hooks_.handle(request, caller);
  if (!std::holds_alternative<EventStream>(response.content)) return response;
  const auto streams = std::ranges::count_if(
      connections_, [](const auto& entry) { return entry.second->conversation.is_streaming(); });
  if (static_cast<size_t>(streams) < hooks_.streams) return response;
  return hooks_.refuse(
      429, fmt::format("{} streams are open; at most {} may be; close one first", streams, hooks_.streams));
}

void Server::tick(int64_t now_ns) {
  std::vector<int> to_serve;
  for (const auto& [fd, c] : connections_) {
    c->conversation.tick(now_ns);
    const bool late = !c->transport->is_established() && now_ns - c->accepted_ns > request_patience_ns;
    if (late) ::shutdown(fd, SHUT_RDWR);
    if (late || c->conversation.is_over() || !c->conversation.unsent().empty()) to_serve.push_back(fd);
  }
  for (const int fd : to_serve) move_bytes(fd);
}

void Server::move_bytes(int fd) {
  Connection& c = *connections_.at(fd);
  for (int piece = 0; piece < max_pieces_per_turn; ++piece) {
    const std::string_view out = c.conversation.unsent();
    if (c.conversation.is_over()) return close(fd);
    char buffer[read_piece_bytes];
    const auto moved = out.empty() ? c.transport->read(buffer) : c.transport->write(out);
    if (moved.bytes == 0 && moved.until == Transport::Until::closed) return close(fd);
    if (moved.bytes == 0) return wait_for(c, moved.until);
    if (out.empty())
      c.conversation.receive({buffer, moved.bytes}, hooks_.now_ns());
    else
      c.conversation.sent(moved.bytes, hooks_.now_ns());
  }
  // There may be more in either direction, also bytes that only the transport holds. A turn of the loop for
  // the other connections comes first.
  loop_.watch_for(fd, EPOLLIN | EPOLLOUT);
}

void Server::wait_for(const Connection& c, Transport::Until until) {
  loop_.watch_for(c.transport->fd(), until == Transport::Until::writable ? EPOLLOUT : EPOLLIN);
}

// A stream has bytes to send, or has ended. The program calls this in the middle of its own work, so the
// connection is served in the next turn of the loop. A socket whose reader has stopped is not writable; if it
// is shut down, the loop reports it all the same.
void Server::wake(Connection& c) {
  const int fd = c.transport->fd();
  if (c.conversation.is_broken()) ::shutdown(fd, SHUT_RDWR);
  loop_.watch_for(fd, EPOLLIN | EPOLLOUT);
}

}  // namespace carve::http
