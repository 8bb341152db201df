#include "guest/process/attach_request.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

namespace carve::guest {
namespace {

constexpr int64_t pause_ns = 50'000'000;
constexpr char attach_limit[] = "; at most 30 s";
static_assert(attach_patience_ns == 30'000'000'000);
constexpr int64_t quiet_ns = 2'000'000'000;  // Shorter waits are not reported, such as restarts of the agent.
constexpr unsigned page_count = 3;

int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * int64_t{1'000'000'000} + t.tv_nsec;
}

void sleep_ns(int64_t ns) {
  const timespec t = {ns / 1'000'000'000, ns % 1'000'000'000};
  nanosleep(&t, nullptr);
}

// Writes a line to standard error with one call, so that other output does not split it.
void report(const char* what, const char* path, const char* rest) {
  iovec parts[] = {{const_cast<char*>(what), strlen(what)},
                   {const_cast<char*>(path), strlen(path)},
                   {const_cast<char*>(rest), strlen(rest)},
                   {const_cast<char*>("\n"), 1}};
  [[maybe_unused]] const ssize_t written = writev(STDERR_FILENO, parts, sizeof parts / sizeof parts[0]);
}

struct Descriptor {
  int fd = -1;
  Descriptor() = default;
  explicit Descriptor(int d) : fd(d) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

// Returns a hash that stays the same in one program image and differs after an exec: the kernel stores 16 new
// random bytes there.
uint64_t image_hash() {
  const auto* random = reinterpret_cast<const unsigned char*>(getauxval(AT_RANDOM));
  uint64_t hash = 0xcbf2'9ce4'8422'2325;
  for (int i = 0; random != nullptr && i < 16; ++i) hash = (hash ^ random[i]) * 0x100'0000'01b3;
  return hash;
}

// Maps `bytes` of a file that is at least that long; access beyond the end would be a SIGBUS. fstat is a raw
// call because its symbol is newer than the oldest supported glibc.
void* map(int fd, size_t bytes, int protection) {
  struct stat status;
  if (syscall(SYS_fstat, fd, &status) != 0 || status.st_size < 0 ||
      static_cast<size_t>(status.st_size) < bytes)
    return nullptr;
  void* pages = mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0);
  return pages == MAP_FAILED ? nullptr : pages;
}

bool map_all(const int* fds, unsigned slot, SharedMemory* out) {
  SharedMemory p = {};
  p.control = static_cast<const shm::Control*>(map(fds[0], sizeof(shm::Control), PROT_READ));
  p.report = static_cast<shm::Report*>(map(fds[1], sizeof(shm::Report), PROT_READ | PROT_WRITE));
  p.heartbeat = static_cast<const shm::Heartbeat*>(map(fds[2], sizeof(shm::Heartbeat), PROT_READ));
  p.slot = static_cast<uint16_t>(slot);
  if (p.control != nullptr && p.report != nullptr && p.heartbeat != nullptr &&
      p.control->magic == shm::control_magic && p.control->layout == shm::layout_version &&
      p.control->device_count <= shm::max_devices && p.report->magic == shm::report_magic &&
      p.report->layout == shm::layout_version) {
    *out = p;
    return true;
  }
  unmap(p);
  return false;
}

// Waits for input. Returns false at the deadline.
bool readable(int fd, int64_t deadline) {
  for (;;) {
    const int64_t left = deadline - now_ns();
    pollfd p = {fd, POLLIN, 0};
    const int ready = poll(&p, 1, left <= 0 ? 0 : static_cast<int>(left / 1'000'000 + 1));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

// Reads the beginning of a small file of /proc as text. The text is empty if the file cannot be read.
template <size_t n>
void read_text(const char* path, char (&text)[n]) {
  const Descriptor file(open(path, O_RDONLY | O_CLOEXEC));
  const ssize_t size = file.fd >= 0 ? read(file.fd, text, n - 1) : -1;
  text[size > 0 ? size : 0] = 0;
}

// Reads a decimal number and moves past it. Returns false if there is none.
bool read_number(const char** text, uint64_t* number) {
  const char* at = *text;
  while (*at == ' ' || *at == '\n') ++at;
  if (*at < '0' || *at > '9') return false;
  for (*number = 0; *at >= '0' && *at <= '9'; ++at) *number = *number * 10 + static_cast<uint64_t>(*at - '0');
  *text = at;
  return true;
}

bool is_listed(uint32_t uid) {
  const char* list = getenv("CARVE_TRUSTED_UIDS");
  uint64_t listed = 0;
  while (list != nullptr && read_number(&list, &listed)) {
    if (listed == uid && (*list == ',' || *list == 0)) return true;
    if (*list != ',') return false;
    ++list;
  }
  return false;
}

// Returns whether the agent runs as root or as the program's own user. The rule of all clients is in
// os/server_identity.h.
bool is_trusted_agent(int connection) {
  ucred agent = {};
  socklen_t size = sizeof agent;
  if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &agent, &size) != 0) return false;
  if (agent.uid == 0 || agent.uid == geteuid() || agent.uid == getuid() || is_listed(agent.uid)) return true;
  char map[4096], overflow[32];
  read_text("/proc/self/uid_map", map);
  read_text("/proc/sys/kernel/overflowuid", overflow);
  return is_outside(agent.uid, agent.pid, map, overflow);
}

AttachResult ask(const sockaddr_un& address, shm::Guest guest, int64_t deadline, SharedMemory* pages) {
  const Descriptor connection(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (connection.fd < 0) return AttachResult::unreachable;
  // Connecting to a unix socket succeeds immediately, or fails with EAGAIN if the queue is full.
  if (connect(connection.fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return AttachResult::unreachable;
  if (!is_trusted_agent(connection.fd)) return AttachResult::refused;
  return converse(connection.fd, guest, deadline, pages);
}

}  // namespace

bool is_outside(uint32_t uid, int pid, const char* uid_map, const char* overflow_uid) {
  uint64_t overflow = 0;
  if (!read_number(&overflow_uid, &overflow) || uid != overflow) return false;
  bool is_mapped = false, is_first = true;
  uint64_t first = 0, outside = 0, count = 0;
  while (read_number(&uid_map, &first) && read_number(&uid_map, &outside) && read_number(&uid_map, &count)) {
    is_mapped |= uid >= first && uid - first < count;
    is_first &= first == outside && count >= UINT32_MAX;
  }
  return !is_first && (pid == 0 || !is_mapped);
}

AttachResult converse(int connection, shm::Guest guest, int64_t deadline, SharedMemory* pages) {
  shm::AttachRequest request = {};
  request.magic = shm::attach_magic;
  request.layout = shm::layout_version;
  request.size = sizeof request;
  request.guest = guest;
  request.image = image_hash();
  if (send(connection, &request, sizeof request, MSG_NOSIGNAL) != sizeof request)
    return AttachResult::unreachable;
  if (!readable(connection, deadline)) return AttachResult::unreachable;

  shm::AttachReply reply = {};
  alignas(cmsghdr) char ancillary[CMSG_SPACE(page_count * sizeof(int))];
  iovec body = {&reply, sizeof reply};
  msghdr message = {};
  message.msg_iov = &body;
  message.msg_iovlen = 1;
  message.msg_control = ancillary;
  message.msg_controllen = sizeof ancillary;
  const ssize_t size = recvmsg(connection, &message, MSG_CMSG_CLOEXEC);
  if (size <= 0) return AttachResult::unreachable;

  // All received descriptors are closed here, even if the reply is invalid. At most three can arrive: the
  // kernel drops descriptors that do not fit.
  Descriptor owned[page_count];
  int fds[page_count] = {-1, -1, -1};
  size_t count = 0;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t here = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < here && count < page_count; ++i, ++count) {
      memcpy(&fds[count], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      owned[count].fd = fds[count];
    }
  }
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) return AttachResult::refused;
  const AttachResult result = judge(reply, static_cast<size_t>(size), count);
  if (result == AttachResult::attached && !map_all(fds, reply.slot, pages)) return AttachResult::refused;
  return result;
}

AttachResult judge(const shm::AttachReply& reply, size_t size, size_t descriptors) {
  if (size != sizeof reply || reply.magic != shm::attach_magic || reply.size != sizeof reply)
    return AttachResult::refused;
  if (memchr(reply.message, 0, sizeof reply.message) == nullptr) return AttachResult::refused;
  if (reply.status != shm::AttachStatus::granted && descriptors != 0) return AttachResult::refused;
  switch (reply.status) {
    case shm::AttachStatus::granted:
      return reply.layout == shm::layout_version && descriptors == page_count &&
                     reply.slot < shm::max_processes && reply.control_size == sizeof(shm::Control) &&
                     reply.report_size == sizeof(shm::Report)
                 ? AttachResult::attached
                 : AttachResult::refused;
    case shm::AttachStatus::not_in_slice: return AttachResult::not_in_slice;
    case shm::AttachStatus::try_again: return AttachResult::unreachable;
    case shm::AttachStatus::wrong_layout:
    case shm::AttachStatus::no_slot: return AttachResult::refused;
  }
  return AttachResult::refused;
}

void unmap(const SharedMemory& p) {
  if (p.control != nullptr) munmap(const_cast<shm::Control*>(p.control), sizeof(shm::Control));
  if (p.report != nullptr) munmap(p.report, sizeof(shm::Report));
  if (p.heartbeat != nullptr) munmap(const_cast<shm::Heartbeat*>(p.heartbeat), sizeof(shm::Heartbeat));
}

AttachResult attach(const char* path, shm::Guest guest, int64_t patience_ns, SharedMemory* pages) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const size_t length = strlen(path);
  if (length + strlen(shm::attach_suffix) >= sizeof address.sun_path) return AttachResult::unreachable;
  memcpy(address.sun_path, path, length);
  memcpy(address.sun_path + length, shm::attach_suffix, strlen(shm::attach_suffix) + 1);
  const int64_t start = now_ns(), deadline = start + patience_ns;
  bool is_reported = false;
  for (;;) {
    const int64_t report_at = is_reported ? deadline : start + quiet_ns;
    const AttachResult result = ask(address, guest, report_at < deadline ? report_at : deadline, pages);
    const int64_t now = now_ns(), left = deadline - now;
    if (result != AttachResult::unreachable) return result;
    if (left <= 0) {
      if (is_reported) report("carve: no answer from the agent at ", path, "; this process gets no device");
      return result;
    }
    if (!is_reported && now - start >= quiet_ns) {
      is_reported = true;
      report("carve: waiting for the agent at ", path, attach_limit);
    }
    sleep_ns(left < pause_ns ? left : pause_ns);
  }
}

}  // namespace carve::guest
