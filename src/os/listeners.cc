#include "os/listeners.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "os/fd.h"

namespace carve::os {
namespace {

constexpr unsigned tcp_listen = 10;        // TCP_LISTEN of the kernel's tcp_states.h.
constexpr unsigned cgroup_attribute = 21;  // INET_DIAG_CGROUP_ID; the headers of older kernels lack it.
constexpr size_t max_listeners = 64;       // SO_REUSEPORT allows several listeners.

struct Request {
  nlmsghdr header;
  inet_diag_req_v2 body;
};

// Returns whether a listener with this address gets connections to 127.0.0.1.
bool is_reachable(const inet_diag_msg& seen, bool is_v6_only) {
  const uint32_t* const address = seen.id.idiag_src;
  if (seen.idiag_family == AF_INET) return address[0] == 0 || address[0] == htonl(INADDR_LOOPBACK);
  if (is_v6_only) return false;
  const bool is_any = address[0] == 0 && address[1] == 0 && address[2] == 0 && address[3] == 0;
  return is_any || (address[0] == 0 && address[1] == 0 && address[2] == htonl(0xffff) &&
                    (address[3] == 0 || address[3] == htonl(INADDR_LOOPBACK)));
}

void take(const nlmsghdr& message, uint16_t port, std::vector<Listener>& out) {
  if (message.nlmsg_len < NLMSG_LENGTH(sizeof(inet_diag_msg))) return;
  const auto& seen = *static_cast<const inet_diag_msg*>(NLMSG_DATA(&message));
  if (seen.id.idiag_sport != htons(port)) return;
  Listener listener{.cookie = uint64_t{seen.id.idiag_cookie[1]} << 32 | seen.id.idiag_cookie[0],
                    .inode = seen.idiag_inode,
                    .uid = seen.idiag_uid,
                    .cgroup = {}};
  bool is_v6_only = false;
  const char* const begin = reinterpret_cast<const char*>(&message);
  size_t at = NLMSG_LENGTH(sizeof(inet_diag_msg));
  nlattr attribute;
  while (at + sizeof attribute <= message.nlmsg_len) {
    memcpy(&attribute, begin + at, sizeof attribute);
    if (attribute.nla_len < sizeof attribute || at + attribute.nla_len > message.nlmsg_len) break;
    const char* const value = begin + at + sizeof attribute;
    const size_t size = attribute.nla_len - sizeof attribute;
    if (attribute.nla_type == INET_DIAG_SKV6ONLY && size >= 1) is_v6_only = *value != 0;
    if (attribute.nla_type == cgroup_attribute && size == sizeof(uint64_t)) {
      uint64_t id = 0;
      memcpy(&id, value, sizeof id);
      listener.cgroup = id;
    }
    at += NLA_ALIGN(attribute.nla_len);
  }
  if (is_reachable(seen, is_v6_only) && out.size() < max_listeners) out.push_back(listener);
}

// Adds the listeners of one address family.
Outcome<void> list(const Fd& socket, uint8_t family, uint16_t port, std::vector<Listener>& out) {
  Request request{};
  request.header = {.nlmsg_len = sizeof request,
                    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
                    .nlmsg_seq = family,
                    .nlmsg_pid = 0};
  request.body.sdiag_family = family;
  request.body.sdiag_protocol = IPPROTO_TCP;
  request.body.idiag_states = 1u << tcp_listen;
  request.body.id.idiag_sport = htons(port);
  const auto failed = [](int error) {
    return failure(FailureKind::unavailable, "cannot list the sockets: {}", strerror(error));
  };
  if (send(socket.get(), &request, sizeof request, 0) != sizeof request) return failed(errno);
  alignas(nlmsghdr) char answer[32 << 10];
  for (;;) {
    const ssize_t got = recv(socket.get(), answer, sizeof answer, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return failed(got < 0 ? errno : EIO);
    size_t left = static_cast<size_t>(got);
    for (const auto* message = reinterpret_cast<const nlmsghdr*>(answer); NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
      if (message->nlmsg_type == NLMSG_DONE) return {};
      if (message->nlmsg_type == NLMSG_ERROR) {
        const auto& error = *static_cast<const nlmsgerr*>(NLMSG_DATA(message));
        if (family == AF_INET6 && error.error == -ENOENT) return {};  // The kernel has no IPv6.
        return failed(-error.error);
      }
      take(*message, port, out);
    }
  }
}

}  // namespace

Outcome<std::vector<Listener>> loopback_listeners(uint16_t port) {
  const Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!socket)
    return failure(FailureKind::unavailable, "cannot open a sock_diag socket: {}", strerror(errno));
  std::vector<Listener> out;
  for (const uint8_t family : {AF_INET, AF_INET6})
    if (const auto listed = list(socket, family, port, out); !listed) return tl::unexpected(listed.error());
  return out;
}

}  // namespace carve::os
