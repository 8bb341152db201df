#include "os/service_watchdog.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "os/fd.h"

namespace carve::os {
namespace {

int64_t number_in(const char* variable) {
  const char* const text = getenv(variable);
  if (text == nullptr) return 0;
  int64_t out = 0;
  const auto [end, error] = std::from_chars(text, text + strlen(text), out);
  return error == std::errc() && *end == '\0' && out > 0 ? out : 0;
}

// Returns a socket that is connected to the service manager. It is empty if there is none.
Fd connect_to_manager() {
  const char* const path = getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const size_t length = path != nullptr ? strlen(path) : 0;
  if (length < 2 || length >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@')) return {};
  memcpy(address.sun_path, path, length);
  if (path[0] == '@') address.sun_path[0] = '\0';  // An abstract name.
  Fd out(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  return connect(out.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0 ? std::move(out) : Fd();
}

}  // namespace

int64_t watchdog_interval_ns() {
  const int64_t pid = number_in("WATCHDOG_PID");
  return pid != 0 && pid != getpid() ? 0 : number_in("WATCHDOG_USEC") * 1000;
}

void report_to_watchdog(Loop& loop) {
  const int64_t interval = watchdog_interval_ns();
  const auto manager = std::make_shared<Fd>(interval != 0 ? connect_to_manager() : Fd());
  if (!*manager) return;
  loop.every(interval / 2, [manager] {
    constexpr std::string_view turns = "WATCHDOG=1";
    send(manager->get(), turns.data(), turns.size(), MSG_NOSIGNAL);
  });
}

}  // namespace carve::os
