#include "os/tcp.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
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

namespace {

// Writes an address in sock_diag's form, in network byte order.
void set_end(const sockaddr_storage& from, uint32_t (&address)[4], uint16_t& port) {
  if (from.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(from);
    memcpy(address, &four.sin_addr, sizeof four.sin_addr);
    port = four.sin_port;
  } else {
    const auto& six = reinterpret_cast<const sockaddr_in6&>(from);
    memcpy(address, &six.sin6_addr, sizeof six.sin6_addr);
    port = six.sin6_port;
  }
}

}  // namespace

std::optional<uint32_t> uid_of_local_peer(int socket) {
  sockaddr_storage own{}, peer{};
  socklen_t own_size = sizeof own, peer_size = sizeof peer;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&own), &own_size) != 0 ||
      getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0)
    return std::nullopt;
  struct {
    nlmsghdr header{};
    inet_diag_req_v2 body{};
  } request;
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  request.body.sdiag_family = static_cast<uint8_t>(peer.ss_family);
  request.body.sdiag_protocol = IPPROTO_TCP;
  request.body.idiag_states = UINT32_MAX;
  request.body.id.idiag_cookie[0] = request.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  set_end(peer, request.body.id.idiag_src, request.body.id.idiag_sport);  // The peer's own end.
  set_end(own, request.body.id.idiag_dst, request.body.id.idiag_dport);

  const Fd kernel(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG));
  if (!kernel || send(kernel.get(), &request, sizeof request, 0) != static_cast<ssize_t>(sizeof request))
    return std::nullopt;
  struct {
    nlmsghdr header{};
    inet_diag_msg body{};
    char attributes[512] = {};
  } answer;
  const ssize_t size = recv(kernel.get(), &answer, sizeof answer, 0);
  if (size < static_cast<ssize_t>(sizeof answer.header + sizeof answer.body) ||
      answer.header.nlmsg_type != SOCK_DIAG_BY_FAMILY)
    return std::nullopt;
  // A closed socket has neither an inode nor a uid.
  return answer.body.idiag_inode != 0 ? std::optional(answer.body.idiag_uid) : std::nullopt;
}

}  // namespace carve::os
