#include "client/server_socket.h"

#include <pwd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>

#include "os/server_identity.h"

namespace carve::client {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t max_socket_path_bytes = sizeof(sockaddr_un::sun_path) - 1;  // Without the terminator.
constexpr std::chrono::milliseconds pause{5};
// The service user of the Debian package (deploy/carve.sysusers.conf).
constexpr const char* controller_user = "carve-controller";

std::optional<api::Problem> bad_path(const std::string& socket) {
  if (socket.size() <= max_socket_path_bytes) return std::nullopt;
  return api::Problem{
      .title = "invalid socket path",
      .detail =
          fmt::format("{}: a unix socket's path has at most {} bytes, but this one has {}; use a shorter one",
                      socket, max_socket_path_bytes, socket.size())};
}

// Waits in connect() while the server's queue is full, for as long as the socket's timeout allows. Returns 0
// or an errno.
int connect_within(int fd, const sockaddr_un& address, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::microseconds>(deadline - Clock::now());
    if (left.count() <= 0) return EAGAIN;
    const timeval limit{.tv_sec = left.count() / 1'000'000, .tv_usec = left.count() % 1'000'000};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return 0;
    if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS) return errno;
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace

api::Problem unreachable(const std::string& socket, int error, const Settings& settings) {
  api::Problem problem{.type = "carve:no-agent", .title = "no agent", .status = 503};
  const auto say = [&](auto... part) { problem.detail = fmt::format(part...); };
  if (settings.server == Server::controller) {
    const bool absent = error == ENOENT || error == ECONNREFUSED;
    problem.detail =
        absent ? fmt::format(
                     "no controller listens at {}; start it with 'carve up', or set another socket with {}",
                     socket, settings.socket_option)
               : fmt::format("cannot reach the controller at {}: {}", socket, std::strerror(error));
    return problem;
  }
  switch (error) {
    case ENOENT:
      say(fmt::runtime(
              "no agent listens at {}; start one with 'carved &', or 'carved --sim a10x2 &' without a "
              "GPU, or set another socket with {}"),
          socket, settings.socket_option);
      break;
    case ECONNREFUSED:
      say(fmt::runtime("{} exists, but its agent has ended; start it again with 'carved --socket {} &'; "
                       "running slices are kept"),
          socket, socket);
      break;
    case EACCES: {
      passwd entry{};
      passwd* user = nullptr;
      char space[16384];
      getpwuid_r(geteuid(), &entry, space, sizeof space, &user);
      say(fmt::runtime(
              "no permission to open {}; it belongs to root and the group carve; run 'usermod -aG carve {}' "
              "and log in again, or run your own agent with 'carved &'"),
          socket, user != nullptr ? user->pw_name : "USER");
      break;
    }
    default: say(fmt::runtime("cannot reach the agent at {}: {}"), socket, std::strerror(error));
  }
  return problem;
}

api::Problem no_response(const std::string& socket, std::chrono::seconds waited) {
  return {.type = "carve:no-response",
          .title = "no response",
          .status = 504,
          .detail =
              fmt::format("the agent at {} did not answer within {} s; see its log", socket, waited.count())};
}

Answer<os::Fd> connect_to_server(const std::string& socket, const Settings& settings) {
  if (auto problem = bad_path(socket)) return tl::unexpected(*problem);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket.c_str(), socket.size());
  os::Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return tl::unexpected(unreachable(socket, errno, settings));
  const int error = connect_within(fd.get(), address, Clock::now() + settings.patience);
  if (error == EAGAIN) return tl::unexpected(no_response(socket, settings.patience));
  if (error != 0) return tl::unexpected(unreachable(socket, error, settings));
  const bool is_controller = settings.server == Server::controller;
  if (const auto uid = os::untrusted_server(fd.get(), is_controller ? controller_user : nullptr))
    return tl::unexpected(api::Problem{
        .type = "carve:untrusted-server",
        .title = "untrusted server",
        .status = 403,
        .detail = fmt::format("the {} at {} is a process of {}", is_controller ? "controller" : "agent",
                              socket, os::distrust_message(*uid))});
  return fd;
}

}  // namespace carve::client
