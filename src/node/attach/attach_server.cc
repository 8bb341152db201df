#include "node/attach/attach_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "os/clock.h"

namespace carve::node {
namespace {

constexpr size_t max_connections = 128;
constexpr size_t max_connections_of_user = 8;
constexpr unsigned max_accepts_per_turn = 64;
constexpr int64_t patience = 2 * os::second;

}  // namespace

std::optional<shm::AttachRequest> parse_attach_request(const void* data, ssize_t received) {
  shm::AttachRequest request{};
  if (received < static_cast<ssize_t>(sizeof request) || received > 4096) return std::nullopt;
  memcpy(&request, data, sizeof request);
  if (request.magic != shm::attach_magic || request.size != static_cast<uint32_t>(received))
    return std::nullopt;
  if (request.guest != shm::Guest::preload && request.guest != shm::Guest::shim) return std::nullopt;
  return request;
}

AttachServer::AttachServer(os::Loop& loop, Agent& agent, os::Fd listener, std::optional<AttachPoint> point)
    : loop_(loop), agent_(agent), listener_(std::move(listener)), point_(std::move(point)) {
  loop_.watch(listener_.get(), EPOLLIN, [this](uint32_t) { accept_some(); });
}

AttachServer::~AttachServer() {
  loop_.forget(listener_.get());
  for (const auto& [number, connection] : connections_) loop_.forget(number);
}

void AttachServer::listen_at(os::Fd listener) {
  loop_.forget(listener_.get());
  listener_ = std::move(listener);
  loop_.watch(listener_.get(), EPOLLIN, [this](uint32_t) { accept_some(); });
}

// The listener stays watched, so the remaining connections are accepted in the next turn of the loop.
void AttachServer::accept_some() {
  for (unsigned i = 0; i < max_accepts_per_turn; ++i) {
    os::Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd && (errno == EMFILE || errno == ENFILE) && !connections_.empty()) {
      close(oldest_of_largest_user());
      continue;
    }
    if (!fd) return;
    auto peer = os::peer_of(fd.get());
    if (!peer) continue;
    make_room(peer->uid);
    const int number = fd.get();
    const uint64_t accepted = ++accepted_;
    connections_.emplace(number, Connection{std::move(fd), std::move(*peer), accepted, {}});
    loop_.watch(number, EPOLLIN, [this, number](uint32_t) { read(number); });
    loop_.after(patience, [this, number, accepted, lives = std::weak_ptr(lives_)] {
      if (!lives.expired() && has(number, accepted)) close(number);
    });
    // The guest library sends its request when it connects. So its connection is answered before the next one
    // is accepted, and is never the one that is dropped.
    read(number);
  }
}

bool AttachServer::has(int connection, uint64_t accepted) const {
  const auto found = connections_.find(connection);
  return found != connections_.end() && found->second.number == accepted;
}

int AttachServer::oldest_of(uint32_t uid) const {
  const auto oldest = std::ranges::min_element(connections_, {}, [uid](const auto& entry) {
    return std::pair(entry.second.peer.uid != uid, entry.second.number);
  });
  return oldest->first;
}

int AttachServer::oldest_of_largest_user() const {
  std::map<uint32_t, size_t> by_uid;
  for (const auto& [number, connection] : connections_) ++by_uid[connection.peer.uid];
  return oldest_of(std::ranges::max_element(by_uid, {}, [](const auto& e) { return e.second; })->first);
}

void AttachServer::make_room(uint32_t uid) {
  const auto of_user =
      std::ranges::count_if(connections_, [uid](const auto& entry) { return entry.second.peer.uid == uid; });
  if (static_cast<size_t>(of_user) >= max_connections_of_user)
    close(oldest_of(uid));
  else if (connections_.size() >= max_connections)
    close(oldest_of_largest_user());
}

void AttachServer::close(int connection) {
  loop_.forget(connection);
  connections_.erase(connection);
}

void AttachServer::read(int connection) {
  alignas(shm::AttachRequest) char data[sizeof(shm::AttachRequest)] = {};
  const ssize_t received = os::receive_with(connection, data, sizeof data, nullptr, 0);
  if (received < 0 && errno == EAGAIN) return;
  const auto request = parse_attach_request(data, received);
  if (!request) return close(connection);
  connections_.at(connection).request = *request;
  answer(connection);
}

void AttachServer::answer(int connection) {
  Connection& from = connections_.at(connection);
  std::vector<os::Fd> descriptors;
  const auto again = [this, connection, accepted = from.number, lives = std::weak_ptr(lives_)] {
    if (!lives.expired() && has(connection, accepted)) answer(connection);
  };
  const auto reply = agent_.attach(from.peer, point_, *from.request, descriptors, again);
  if (!reply) return loop_.forget(connection);  // A peer that hung up needs no reply.
  int fds[8];
  const size_t count = std::min<size_t>(descriptors.size(), 8);
  for (size_t i = 0; i < count; ++i) fds[i] = descriptors[i].get();
  // The reply goes only to the requesting process: while it is alive, no other process has its pid.
  if (os::alive(from.peer.pidfd)) os::send_with(connection, &*reply, sizeof *reply, fds, count);
  close(connection);
}

}  // namespace carve::node
