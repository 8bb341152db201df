#include "controller/runtime/runtime_socket.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "os/socket.h"

namespace carve::controller {
namespace {

// Waits until the socket is ready for the events. Returns false if the deadline passes.
bool wait_for(int fd, short events, int64_t deadline_ns) {
  for (;;) {
    const int64_t left_ns = deadline_ns - os::monotonic_ns();
    if (left_ns <= 0) return false;
    pollfd waited{fd, events, 0};
    const int ready = poll(&waited, 1, static_cast<int>(left_ns / os::millisecond) + 1);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

bool may_repeat() { return errno == EAGAIN || errno == EINTR; }

}  // namespace

Outcome<std::string> RuntimeSocket::ask(std::string_view command) const {
  const bool one_command =
      std::ranges::none_of(command, [](char c) { return c < ' ' || c == ';' || c == 0x7f || c == '\\'; });
  if (!one_command || command.empty())
    return failure(FailureKind::invalid_argument,
                   "an HAProxy command must be one line without ';', '\\' and control characters");
  const int64_t deadline_ns = os::monotonic_ns() + patience_ns_;
  const auto late = [&] {
    return failure(FailureKind::unavailable, "HAProxy at {} did not respond to '{}' within {} ms", path_,
                   command.substr(0, command.find(' ')), patience_ns_ / os::millisecond);
  };
  const auto fd = os::connect_to(path_, SOCK_STREAM | SOCK_NONBLOCK);
  if (!fd) return tl::unexpected(fd.error());
  const std::string line = std::string(command) + "\n";
  for (size_t sent = 0; sent < line.size();) {
    const ssize_t count = send(fd->get(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (count > 0) sent += static_cast<size_t>(count);
    if (count > 0) continue;
    if (!may_repeat()) return failure(FailureKind::unavailable, "HAProxy at {}: {}", path_, strerror(errno));
    if (!wait_for(fd->get(), POLLOUT, deadline_ns)) return late();
  }
  shutdown(fd->get(), SHUT_WR);
  std::string answer;
  char bytes[65536];
  for (;;) {
    const ssize_t count = recv(fd->get(), bytes, sizeof bytes, 0);
    if (count == 0) return answer;
    if (count > 0) {
      answer.append(bytes, static_cast<size_t>(count));
      if (answer.size() > max_answer_bytes)
        return failure(FailureKind::unavailable, "HAProxy at {} returned more than {} bytes", path_,
                       max_answer_bytes);
      if (os::monotonic_ns() > deadline_ns) return late();
      continue;
    }
    if (!may_repeat()) return failure(FailureKind::unavailable, "HAProxy at {}: {}", path_, strerror(errno));
    if (!wait_for(fd->get(), POLLIN, deadline_ns)) return late();
  }
}

Outcome<os::ProcessId> RuntimeSocket::listener() const {
  const auto fd = os::connect_to(path_, SOCK_STREAM | SOCK_NONBLOCK);
  if (!fd) return tl::unexpected(fd.error());
  const auto peer = os::peer_of(fd->get());
  if (!peer) return failure(FailureKind::not_found, "the process that listened at {} has ended", path_);
  return peer->process;
}

}  // namespace carve::controller
