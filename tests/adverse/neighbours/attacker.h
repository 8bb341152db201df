// The common part of the attackers: a process of a slice that attaches as the guest library does, but without
// it, and may then write anything to its report page.
#pragma once

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "wire/shm/attach.h"
#include "wire/shm/layout.h"

namespace carve::adverse {

// Returns the report page of the slice in which this process runs. Ends the process if there is none.
inline shm::Report& attach() {
  const char* api = getenv(shm::socket_variable);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  snprintf(address.sun_path, sizeof address.sun_path, "%s%s", api != nullptr ? api : "", shm::attach_suffix);
  const int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  shm::AttachRequest request{};
  request.magic = shm::attach_magic;
  request.layout = shm::layout_version;
  request.size = sizeof request;
  request.guest = shm::Guest::preload;
  request.image = 1;
  shm::AttachReply reply{};
  alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
  iovec body{&reply, sizeof reply};
  msghdr message{};
  message.msg_iov = &body;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const cmsghdr* fds = nullptr;
  if (connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      send(connection, &request, sizeof request, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof request) ||
      recvmsg(connection, &message, MSG_CMSG_CLOEXEC) != static_cast<ssize_t>(sizeof reply) ||
      (fds = CMSG_FIRSTHDR(&message)) == nullptr || fds->cmsg_type != SCM_RIGHTS) {
    fprintf(stderr, "attach: %s\n", reply.message[0] != '\0' ? reply.message : strerror(errno));
    exit(1);
  }
  int report = -1;
  memcpy(&report, CMSG_DATA(fds) + sizeof(int), sizeof report);
  void* page = mmap(nullptr, sizeof(shm::Report), PROT_READ | PROT_WRITE, MAP_SHARED, report, 0);
  if (page == MAP_FAILED) {
    perror("mmap");
    exit(1);
  }
  return *static_cast<shm::Report*>(page);
}

}  // namespace carve::adverse
