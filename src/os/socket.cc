#include "os/socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  // asm-generic/socket.h since Linux 6.5.
#endif

namespace carve::os {
namespace {

Outcome<sockaddr_un> address_of(const std::string& path) {
  if (path.size() > max_socket_path_bytes)
    return failure(FailureKind::invalid_argument,
                   "the socket path {} has {} characters; a unix socket's path has at most {}", path,
                   path.size(), max_socket_path_bytes);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

}  // namespace

Outcome<Fd> listen_at(const std::string& path, int type, unsigned mode) {
  const auto address = address_of(path);
  if (!address) return tl::unexpected(address.error());
  struct stat there {};
  if (lstat(path.c_str(), &there) == 0) {
    if (!S_ISSOCK(there.st_mode))
      return failure(FailureKind::failed_precondition,
                     "{} exists and is not a socket; choose another --socket, or remove the file", path);
    unlink(path.c_str());
  }
  Fd fd(socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // bind() creates the file with the socket's mode minus the umask, and chmod() then adds the missing bits.
  // Changing the umask instead would affect all threads.
  fchmod(fd.get(), mode);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0 ||
      chmod(path.c_str(), mode) != 0 || listen(fd.get(), SOMAXCONN) != 0)
    return failure(FailureKind::unavailable, "cannot listen at {}: {}", path, strerror(errno));
  return fd;
}

Outcome<Fd> connect_to(const std::string& path, int type) {
  const auto address = address_of(path);
  if (!address) return tl::unexpected(address.error());
  Fd fd(socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0)
    return failure(FailureKind::not_found, "no process listens at {}: {}", path, strerror(errno));
  return fd;
}

std::optional<Peer> peer_of(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return std::nullopt;
  int pidfd = -1;
  size = sizeof pidfd;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) == 0) {
    Fd held(pidfd);
    const auto process = process_of(held);
    if (!process) return std::nullopt;
    return Peer(*process, std::move(held), credentials.uid);
  }
  if (errno != ENOPROTOOPT && errno != EINVAL) return std::nullopt;
  const auto before = stat_of(credentials.pid);
  if (!before) return std::nullopt;
  Fd held = open_process(before->id);
  if (!held) return std::nullopt;
  return Peer(before->id, std::move(held), credentials.uid);
}

std::optional<uint32_t> uid_of_peer(int socket) {
  int family = 0;
  ucred credentials{};
  socklen_t size = sizeof family;
  if (getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &family, &size) != 0 || family != AF_UNIX)
    return std::nullopt;
  size = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return std::nullopt;
  return credentials.uid;
}

bool is_peer_in_group(int socket, uint32_t gid) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return false;
  if (credentials.gid == gid) return true;
  size = 0;  // The kernel then returns the required size.
  if (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, nullptr, &size) == 0 || errno != ERANGE) return false;
  std::vector<gid_t> groups(size / sizeof(gid_t));
  if (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size) != 0) return false;
  return std::ranges::find(groups, gid) != groups.end();
}

bool send_with(int socket, const void* data, size_t size, const int* fds, size_t count) {
  iovec part{const_cast<void*>(data), size};
  alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (count > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(header), fds, count * sizeof(int));
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
}

ssize_t receive_with(int socket, void* data, size_t size, Fd* fds, size_t most) {
  iovec part{data, size};
  alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (most > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(most * sizeof(int));
  }
  const ssize_t received = recvmsg(socket, &message, MSG_TRUNC | MSG_CMSG_CLOEXEC);
  size_t taken = 0;
  for (cmsghdr* header = received >= 0 ? CMSG_FIRSTHDR(&message) : nullptr; header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      Fd owned(fd);
      if (taken < most) fds[taken++] = std::move(owned);
    }
  }
  return received;
}

}  // namespace carve::os
