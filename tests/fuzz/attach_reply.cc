// The other end of the attach socket may send any answer with any descriptors. The first byte is the number
// of descriptors, the second selects the invalid ones, and the reply follows.
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "guest/process/attach_request.h"

namespace {

namespace shm = carve::shm;

template <class T>
int file(const char* name, size_t size = sizeof(T)) {
  const int fd = memfd_create(name, MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(size)) != 0) abort();
  return fd;
}

template <class T>
int good(const char* name, uint64_t magic) {
  const int fd = file<T>(name);
  struct Head {
    uint64_t magic;
    uint32_t layout;
  };
  auto* head = static_cast<Head*>(mmap(nullptr, sizeof(Head), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  *head = {magic, shm::layout_version};
  munmap(head, sizeof(Head));
  return fd;
}

// Returns valid descriptors, followed by descriptors that are too short, empty or not a file.
const int* descriptors() {
  static int fds[8];
  if (fds[0] == 0) {
    fds[0] = good<shm::Control>("control", shm::control_magic);
    fds[1] = good<shm::Report>("report", shm::report_magic);
    fds[2] = file<shm::Heartbeat>("heartbeat");
    fds[3] = file<shm::Control>("short", 4096);
    fds[4] = file<shm::Report>("zeros");
    fds[5] = file<shm::Heartbeat>("empty", 0);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) abort();
    fds[6] = ends[0];
    fds[7] = ends[1];
  }
  return fds;
}

int lowest_free() {
  const int fd = dup(0);
  close(fd);
  return fd;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const unsigned count = data[0] % 5, wrong = data[1];
  const int before = (descriptors(), lowest_free());
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) abort();

  int along[4];
  for (unsigned i = 0; i < count; ++i)
    along[i] = descriptors()[(wrong >> 2 * i & 3) == 0 ? i % 3 : 3 + (wrong >> i) % 5];
  alignas(cmsghdr) char ancillary[CMSG_SPACE(sizeof along)] = {};
  iovec body = {const_cast<uint8_t*>(data + 2), size - 2};
  msghdr message = {};
  message.msg_iov = &body;
  message.msg_iovlen = 1;
  if (count > 0) {
    message.msg_control = ancillary;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(c), along, count * sizeof(int));
  }
  if (sendmsg(ends[1], &message, MSG_NOSIGNAL) < 0) shutdown(ends[1], SHUT_RDWR);

  carve::guest::SharedMemory pages = {};
  const auto result = carve::guest::converse(ends[0], shm::Guest::preload, 0, &pages);
  close(ends[0]);
  close(ends[1]);
  if (result == carve::guest::AttachResult::attached) {
    // If the answer is complete, every byte can be read and every slot index is valid.
    if (pages.slot >= shm::max_processes || pages.control->device_count > shm::max_devices) abort();
    volatile uint64_t last =
        pages.report->charges.process[pages.slot].lane[shm::max_devices - 1][shm::lanes - 1].seen;
    last = pages.report->exports.word[shm::export_sets - 1][shm::export_ways - 1];
    (void)last;
    carve::guest::unmap(pages);
  }
  if (lowest_free() != before) abort();  // A descriptor was left open.
  return 0;
}
