#include "http/server.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

namespace carve::http {
namespace {

constexpr int max_pieces_per_turn = 16;
constexpr int max_accepts_per_turn = 64;  // A new peer's request is read before many others come.
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
  bool is_known = false;                // The caller is completely known, and requests are read.
  std::shared_ptr<void> question = {};  // What Complete returned.
  size_t held_bytes = 0;
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
  listen();
  loop_.every(os::second, [this] { tick(hooks_.now_ns()); });
}

Server::~Server() {
  stop_listening();
  for (const auto& [fd, connection] : connections_) loop_.forget(fd);
}

void Server::listen_at(os::Fd listener) {
  stop_listening();
  listener_ = std::move(listener);
  listen();
}

void Server::listen() {
  if (std::exchange(listens_, true)) return;
  loop_.watch(listener_.get(), EPOLLIN, [this](uint32_t) { accept_some(); });
}

void Server::stop_listening() {
  if (std::exchange(listens_, false)) loop_.forget(listener_.get());
}

std::deque<int> Server::waiting_peers(Waiting which) const {
  std::vector<std::pair<int64_t, int>> peers;
  for (const auto& [fd, c] : connections_) {
    if (which == Waiting::with_bytes && c->held_bytes == 0) continue;
    if (const auto since = c->conversation.waits_since()) peers.emplace_back(*since, fd);
  }
  std::ranges::sort(peers);
  std::deque<int> out;
  for (const auto& [since, fd] : peers) out.push_back(fd);
  return out;
}

void Server::accept_some() {
  std::optional<std::deque<int>> waiting;  // Read once in a turn.
  const auto may_give_way = [&] {
    if (!waiting) waiting.emplace(waiting_peers(Waiting::all));
    return !waiting->empty();
  };
  const auto give_way = [&] {
    close(waiting->front());
    waiting->pop_front();
  };
  for (int i = 0; i < max_accepts_per_turn; ++i) {
    const bool full = connections_.size() >= hooks_.connections;
    if (full && !may_give_way()) return stop_listening();
    os::Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd && errno != EMFILE && errno != ENFILE) return;
    if (!fd) {  // The descriptors are used up: as if the table were full.
      if (!may_give_way()) return stop_listening();
      give_way();
      continue;
    }
    auto caller = hooks_.identify ? hooks_.identify(fd.get()) : Caller();
    if (!caller || has_too_many(host_of(*caller))) continue;
    if (full) give_way();
    add(std::move(fd), std::move(*caller));
  }
}

void Server::add(os::Fd fd, Caller caller) {
  auto transport = hooks_.transport(std::move(fd));
  if (!transport) return;
  const int number = transport->fd();
  if (const std::string host = host_of(caller); !host.empty()) ++from_host_[host];
  connections_.emplace(
      number, std::make_unique<Connection>(*this, std::move(transport), std::move(caller), hooks_.now_ns()));
  Connection& c = *connections_.at(number);
  if (!hooks_.complete) return begin(number, c.caller);
  auto question =
      hooks_.complete(c.caller, [this, number](Caller known) { begin(number, std::move(known)); });
  c.question = std::move(question);
}

void Server::begin(int fd, Caller known) {
  Connection& c = *connections_.at(fd);
  c.caller = std::move(known);
  c.is_known = true;
  loop_.watch(fd, EPOLLIN, [this, fd](uint32_t) { move_bytes(fd); });
}

bool Server::has_too_many(const std::string& host) const {
  const auto found = from_host_.find(host);
  return found != from_host_.end() && found->second >= hooks_.connections_from_address;
}

void Server::close(int fd) {
  loop_.forget(fd);
  const auto found = connections_.find(fd);
  held_bytes_ -= found->second->held_bytes;
  if (const auto host = from_host_.find(host_of(found->second->caller));
      host != from_host_.end() && --host->second == 0)
    from_host_.erase(host);
  connections_.erase(found);
  listen();
}

// A process that has ended left its connection to others, for example to its children. They are other
// callers, with a slice of their own, and connect themselves.
Response Server::refuse_heirs(const Caller& caller) const {
  Response refusal = hooks_.refuse(
      401,
      fmt::format("process {}, which made this connection, has ended; connect again", caller.process()->pid));
  refusal.closes = true;
  return refusal;
}

Response Server::handle(const Request& request, const Caller& caller) {
  if (caller.has_ended()) return refuse_heirs(caller);
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
    const bool late =
        (!c->is_known || !c->transport->is_established()) && now_ns - c->accepted_ns > request_patience_ns;
    if (late) ::shutdown(fd, SHUT_RDWR);
    if (late || c->conversation.is_over() || !c->conversation.unsent().empty()) to_serve.push_back(fd);
  }
  for (const int fd : to_serve)
    if (connections_.contains(fd)) move_bytes(fd);  // It may have given way.
  listen();                                         // A peer that was served may wait now, and give way.
}

void Server::count_held(Connection& c) {
  held_bytes_ -= c.held_bytes;
  c.held_bytes = c.conversation.held_bytes();
  held_bytes_ += c.held_bytes;
}

void Server::limit_held() {
  for (const int fd : waiting_peers(Waiting::with_bytes)) {
    if (held_bytes_ <= hooks_.held_bytes) return;
    close(fd);
  }
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
    count_held(c);
    if (held_bytes_ > hooks_.held_bytes) limit_held();
    if (!connections_.contains(fd)) return;  // It gave way.
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
