#include "http/server.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace carve::http {
namespace {

constexpr int max_pieces_per_turn = 16;
constexpr int max_accepts_per_turn = 64;  // Reads new peers' requests before it accepts many others.
constexpr size_t read_piece_bytes = 16 << 10;
constexpr int64_t rest_ns = 20 * os::millisecond;

// Returns how many of the places are available to all users.
size_t without_reserved(size_t places) { return places - places / 4; }

}  // namespace

struct Server::Connection {
  std::unique_ptr<Transport> transport;
  Caller caller;
  int64_t accepted_ns;
  bool is_known = false;                // The caller is fully identified, and requests are read.
  std::shared_ptr<void> question = {};  // The value returned by Complete.
  size_t held_bytes = 0, unsent_bytes = 0;
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

std::vector<int> Server::yielding_peers(const Chosen& chosen) const {
  const int64_t now = hooks_.now_ns();
  std::vector<std::tuple<bool, int64_t, int>> peers;  // Peers that send a request come before slow readers.
  for (const auto& [fd, c] : connections_) {
    if (!chosen(*c)) continue;
    if (const auto since = c->conversation.waits_since())
      peers.emplace_back(false, *since, fd);
    else if (const auto reads_since = c->conversation.sends_since();
             reads_since && now - *reads_since > slow_reader_ns)
      peers.emplace_back(true, *reads_since, fd);
  }
  std::ranges::sort(peers);
  std::vector<int> out;
  for (const auto& [is_reader, since, fd] : peers) out.push_back(fd);
  return out;
}

bool Server::has_reserve(const Caller& caller) const {
  const auto uid = caller.uid();
  return hooks_.has_reserve && uid && caller.slice() == nullptr && hooks_.has_reserve(*uid);
}

std::optional<int> Server::find_place(std::optional<uint32_t> uid) const {
  const auto first_of = [this](const Chosen& chosen) {
    const std::vector<int> peers = yielding_peers(chosen);
    return peers.empty() ? std::nullopt : std::optional(peers.front());
  };
  const auto count = [this](const Chosen& chosen) {
    return static_cast<size_t>(
        std::ranges::count_if(connections_, [&](const auto& entry) { return chosen(*entry.second); }));
  };
  const Chosen any = [](const Connection&) { return true; };
  const Chosen without_reserve = [this](const Connection& c) { return !has_reserve(c.caller); };
  const Chosen own = [uid](const Connection& c) { return c.caller.uid() == uid; };
  const bool is_full = connections_.size() >= hooks_.connections;
  if (!hooks_.has_reserve || !uid) return is_full ? first_of(any) : -1;
  if (hooks_.has_reserve(*uid)) {
    if (!is_full) return -1;
    const auto other = first_of(without_reserve);
    return other ? other : first_of(any);
  }
  if (count(own) >= hooks_.connections_from_uid) return first_of(own);
  const bool has_room = !is_full && count(without_reserve) < without_reserved(hooks_.connections);
  return has_room ? -1 : first_of(without_reserve);
}

void Server::accept_some() {
  const Chosen any = [](const Connection&) { return true; };
  for (int i = 0; i < max_accepts_per_turn; ++i) {
    if (connections_.size() >= hooks_.connections && yielding_peers(any).empty()) return stop_listening();
    os::Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd && errno != EMFILE && errno != ENFILE) return;
    if (!fd) {  // If file descriptors run out, behave as if the table were full.
      const std::vector<int> peers = yielding_peers(any);
      if (peers.empty()) return stop_listening();
      close(peers.front());
      continue;
    }
    // A peer for which there is no place costs no more than this.
    const auto place = find_place(hooks_.uid_of(fd.get()));
    if (!place) continue;
    auto caller = hooks_.identify ? hooks_.identify(fd.get()) : Caller();
    if (!caller || has_too_many(caller->origin())) continue;
    if (*place >= 0) close(*place);
    add(std::move(fd), std::move(*caller));
  }
}

void Server::add(os::Fd fd, Caller caller) {
  auto transport = hooks_.transport(std::move(fd));
  if (!transport) return;
  const int number = transport->fd();
  if (const std::string origin = caller.origin(); !origin.empty()) ++from_origin_[origin];
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

bool Server::has_too_many(const std::string& origin) const {
  const auto found = from_origin_.find(origin);
  return found != from_origin_.end() && found->second >= hooks_.connections_from_address;
}

void Server::close(int fd) {
  loop_.forget(fd);
  std::erase(resting_, fd);
  const auto found = connections_.find(fd);
  held_bytes_ -= found->second->held_bytes;
  unsent_bytes_ -= found->second->unsent_bytes;
  if (const auto origin = from_origin_.find(found->second->caller.origin());
      origin != from_origin_.end() && --origin->second == 0)
    from_origin_.erase(origin);
  connections_.erase(found);
  listen();
}

// Rejects requests over the connection of a process that has ended and has left the connection to others,
// such as its children. They are other callers, possibly in another slice, and must connect themselves.
Response Server::refuse_heirs(const Caller& caller) const {
  Response refusal = hooks_.refuse(
      401,
      fmt::format("process {}, which made this connection, has ended; connect again", caller.process()->pid));
  refusal.closes = true;
  return refusal;
}

Response Server::handle(const Request& request, const Caller& caller) {
  if (caller.has_ended()) return refuse_heirs(caller);
  const int64_t begun_ns = hooks_.now_ns();
  Response response = hooks_.handle(request, caller);
  if (hooks_.has_reserve && caller.uid() && !has_reserve(caller))
    busy_ns(*caller.uid()) += hooks_.now_ns() - begun_ns;
  if (!std::holds_alternative<EventStream>(response.content)) return response;
  auto refusal = refuse_stream(caller);
  return refusal ? std::move(*refusal) : std::move(response);
}

std::optional<Response> Server::refuse_stream(const Caller& caller) const {
  const std::string origin = caller.origin();
  size_t all = 0, without_reserve = 0, own = 0;
  for (const auto& [fd, c] : connections_) {
    if (!c->conversation.is_streaming()) continue;
    ++all;
    without_reserve += has_reserve(c->caller) ? 0 : 1;
    own += c->caller.uid() == caller.uid() && c->caller.origin() == origin ? 1 : 0;
  }
  const auto refuse = [this](const std::string& whose, size_t open, size_t most) {
    return hooks_.refuse(
        429, fmt::format("{}{} streams are open; the limit is {}; close one first", whose, open, most));
  };
  if (all >= hooks_.streams) return refuse("", all, hooks_.streams);
  if (has_reserve(caller)) return std::nullopt;
  if (own >= hooks_.streams_from_peer)
    return refuse((origin.empty() ? caller.text() : origin) + ": ", own, hooks_.streams_from_peer);
  if (hooks_.has_reserve && without_reserve >= without_reserved(hooks_.streams))
    return refuse("", without_reserve, without_reserved(hooks_.streams));
  return std::nullopt;
}

void Server::tick(int64_t now_ns) {
  std::vector<int> to_serve;
  for (const auto& [fd, c] : connections_) {
    c->conversation.tick(now_ns);
    const bool late =
        (!c->is_known || !c->transport->is_established()) && now_ns - c->accepted_ns > request_patience_ns;
    // A stream belongs to the process that opened it, not to processes that inherited the connection.
    const bool has_heirs = c->conversation.is_streaming() && c->caller.has_ended();
    if (late || has_heirs) ::shutdown(fd, SHUT_RDWR);
    if (late || has_heirs || c->conversation.is_over() || !c->conversation.unsent().empty())
      to_serve.push_back(fd);
  }
  for (const int fd : to_serve)
    if (connections_.contains(fd)) move_bytes(fd);  // It may have been closed for another peer.
  std::erase_if(busy_, [&](const auto& entry) { return now_ns - entry.second.at_ns > 2 * entry.second.ns; });
  listen();  // A peer that was just served may now be waiting and can be closed.
}

void Server::count_held(Connection& c) {
  held_bytes_ -= c.held_bytes;
  unsent_bytes_ -= c.unsent_bytes;
  c.held_bytes = c.conversation.held_bytes();
  c.unsent_bytes = c.conversation.unsent_bytes();
  held_bytes_ += c.held_bytes;
  unsent_bytes_ += c.unsent_bytes;
}

void Server::limit_held() {
  for (const int fd : yielding_peers([](const Connection& c) { return c.held_bytes > 0; })) {
    if (held_bytes_ <= hooks_.held_bytes) break;
    close(fd);
  }
  for (const int fd : yielding_peers([](const Connection& c) { return c.unsent_bytes > 0; })) {
    if (unsent_bytes_ <= hooks_.held_bytes) break;
    close(fd);
  }
}

// Returns the uid's excess time. A uid gains half of the elapsed time.
int64_t& Server::busy_ns(uint32_t uid) {
  const int64_t now = hooks_.now_ns();
  Busy& busy = busy_[uid];
  busy.ns = std::max<int64_t>(0, busy.ns - (now - busy.at_ns) / 2);
  busy.at_ns = now;
  return busy.ns;
}

bool Server::must_rest(const Connection& c) {
  const auto uid = c.caller.uid();
  return uid && !c.conversation.is_streaming() && busy_.contains(*uid) && !has_reserve(c.caller) &&
         busy_ns(*uid) > max_busy_ns;
}

void Server::rest(int fd) {
  loop_.forget(fd);
  if (resting_.empty())
    loop_.after(rest_ns, [this, lives = std::weak_ptr(lives_)] {
      if (!lives.expired()) resume();
    });
  resting_.push_back(fd);
}

void Server::resume() {
  for (const int fd : std::exchange(resting_, {}))
    loop_.watch(fd, EPOLLIN | EPOLLOUT, [this, fd](uint32_t) { move_bytes(fd); });
}

void Server::move_bytes(int fd) {
  Connection& c = *connections_.at(fd);
  if (!c.is_known) return close(fd);  // The connection is late. Its request is still in the kernel, unread.
  if (!c.conversation.is_over() && must_rest(c)) return rest(fd);
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
    if (std::max(held_bytes_, unsent_bytes_) > hooks_.held_bytes) limit_held();
    if (!connections_.contains(fd)) return;  // It was closed for another peer.
  }
  // There may be more bytes in either direction, including bytes that only the transport holds. Let the loop
  // handle the other connections first.
  loop_.watch_for(fd, EPOLLIN | EPOLLOUT);
}

void Server::wait_for(const Connection& c, Transport::Until until) {
  loop_.watch_for(c.transport->fd(), until == Transport::Until::writable ? EPOLLOUT : EPOLLIN);
}

// Called when a stream has bytes to send or has ended. Because the program calls this in the middle of its
// own work, the connection is served in the next turn of the loop. If the reader has stopped, its socket is
// not writable; if the socket is shut down, the loop reports it anyway.
void Server::wake(Connection& c) {
  const int fd = c.transport->fd();
  if (c.conversation.is_broken()) ::shutdown(fd, SHUT_RDWR);
  loop_.watch_for(fd, EPOLLIN | EPOLLOUT);
}

}  // namespace carve::http
