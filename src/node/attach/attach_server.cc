#include "node/attach/attach_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "os/clock.h"

namespace carve::node {
namespace {

constexpr size_t max_connections = 128;
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

AttachServer::AttachServer(os::Loop& loop, Agent& agent, os::Fd listener, std::optional<ContainerSlot> slot)
    : loop_(loop), agent_(agent), listener_(std::move(listener)), slot_(slot) {
  loop_.watch(listener_.get(), EPOLLIN, [this](uint32_t) { accept_all(); });
}

AttachServer::~AttachServer() {
  loop_.forget(listener_.get());
  for (const auto& [number, connection] : connections_) loop_.forget(number);
}

void AttachServer::accept_all() {
  while (connections_.size() < max_connections) {
    os::Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return;
    auto peer = os::peer_of(fd.get());
    if (!peer) continue;
    const int number = fd.get();
    const uint64_t accepted = ++accepted_;
    connections_.emplace(number, Connection{std::move(fd), std::move(*peer), accepted});
    loop_.watch(number, EPOLLIN, [this, number](uint32_t) { answer(number); });
    loop_.after(patience, [this, number, accepted, lives = std::weak_ptr(lives_)] {
      if (lives.expired()) return;
      const auto late = connections_.find(number);
      if (late != connections_.end() && late->second.number == accepted) close(number);
    });
  }
  loop_.forget(listener_.get());  // All connections are in use; the next close() watches the socket again.
}

void AttachServer::close(int connection) {
  loop_.forget(connection);
  const bool full = connections_.size() >= max_connections;
  connections_.erase(connection);
  if (full) loop_.watch(listener_.get(), EPOLLIN, [this](uint32_t) { accept_all(); });
}

void AttachServer::answer(int connection) {
  Connection& from = connections_.at(connection);
  alignas(shm::AttachRequest) char data[sizeof(shm::AttachRequest)] = {};
  const auto request =
      parse_attach_request(data, os::receive_with(connection, data, sizeof data, nullptr, 0));
  if (request) {
    std::vector<os::Fd> descriptors;
    const shm::AttachReply reply = agent_.attach(from.peer, slot_, *request, descriptors);
    int fds[8];
    const size_t count = std::min<size_t>(descriptors.size(), 8);
    for (size_t i = 0; i < count; ++i) fds[i] = descriptors[i].get();
    // The reply goes only to the process that asked: while it lives, no other process has its pid.
    if (os::alive(from.peer.pidfd)) os::send_with(connection, &reply, sizeof reply, fds, count);
  }
  close(connection);
}

}  // namespace carve::node
