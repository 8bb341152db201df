#include "os/tcp.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <cstring>

namespace carve::os {

std::optional<TcpAddress> parse_tcp_address(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  TcpAddress out{.host = text.substr(0, colon)};
  if (out.host.starts_with('[') && out.host.ends_with(']'))
    out.host = out.host.substr(1, out.host.size() - 2);
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, out.port);
  unsigned char address[sizeof(in6_addr)];
  if (error != std::errc{} || stop != end ||
      (inet_pton(AF_INET, out.host.c_str(), address) != 1 &&
       inet_pton(AF_INET6, out.host.c_str(), address) != 1))
    return std::nullopt;
  return out;
}

std::string text(const TcpAddress& address) {
  const bool six = address.host.find(':') != std::string::npos;
  return fmt::format(fmt::runtime(six ? "[{}]:{}" : "{}:{}"), address.host, address.port);
}

bool is_loopback(const TcpAddress& address) {
  return address.host.starts_with("127.") || address.host == "::1";
}

Outcome<Fd> listen_at(TcpAddress& at) {
  sockaddr_in6 six{};
  sockaddr_in four{};
  four.sin_family = AF_INET;
  six.sin6_family = AF_INET6;
  four.sin_port = six.sin6_port = htons(at.port);
  const bool is_four = inet_pton(AF_INET, at.host.c_str(), &four.sin_addr) == 1;
  if (!is_four) inet_pton(AF_INET6, at.host.c_str(), &six.sin6_addr);
  auto* address = is_four ? reinterpret_cast<sockaddr*>(&four) : reinterpret_cast<sockaddr*>(&six);
  socklen_t size = is_four ? sizeof four : sizeof six;
  Fd fd(socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  if (!fd || setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(fd.get(), address, size) != 0 || listen(fd.get(), SOMAXCONN) != 0 ||
      getsockname(fd.get(), address, &size) != 0)
    return failure(FailureKind::unavailable, "{}: {}", text(at), strerror(errno));
  at.port = ntohs(is_four ? four.sin_port : six.sin6_port);
  return fd;
}

}  // namespace carve::os
