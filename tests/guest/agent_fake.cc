#include "tests/guest/agent_fake.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

#include "wire/shm/shared_blocks.h"

namespace carve::test {
namespace {

void require(bool ok, const char* what) {
  if (!ok) throw std::runtime_error(std::string(what) + ": " + strerror(errno));
}

template <class T>
T* page_file(const char* name, int* fd) {
  *fd = memfd_create(name, MFD_CLOEXEC);
  require(*fd >= 0 && ftruncate(*fd, sizeof(T)) == 0, name);
  void* p = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
  require(p != MAP_FAILED, name);
  return static_cast<T*>(p);
}

void make_read_only(int* fd) {
  const int reopened = open(("/proc/self/fd/" + std::to_string(*fd)).c_str(), O_RDONLY | O_CLOEXEC);
  require(reopened >= 0, "reopen");
  close(*fd);
  *fd = reopened;
}

void erase_locked(uint64_t* names, unsigned count) {
  shm::erase_locked_names(names, count, [](size_t first, auto piece) {
    const int list = open("/proc/locks", O_RDONLY | O_CLOEXEC);
    require(list >= 0, "/proc/locks");
    char text[shm::lock_page_bytes];
    ssize_t got = 0;
    for (size_t size = first; (got = read(list, text, size)) > 0; size = sizeof text)
      piece(text, static_cast<size_t>(got));
    close(list);
    return got == 0;
  });
}

}  // namespace

PageFiles::PageFiles() {
  control = page_file<shm::Control>("control", &control_fd);
  report = page_file<shm::Report>("report", &report_fd);
  heartbeat = page_file<shm::Heartbeat>("heartbeat", &heartbeat_fd);
  make_read_only(&control_fd);
  make_read_only(&heartbeat_fd);
  control->magic = shm::control_magic;
  control->layout = shm::layout_version;
  report->magic = shm::report_magic;
  report->layout = shm::layout_version;
}

PageFiles::~PageFiles() {
  munmap(control, sizeof *control);
  munmap(report, sizeof *report);
  munmap(heartbeat, sizeof *heartbeat);
  for (int fd : {control_fd, report_fd, heartbeat_fd}) close(fd);
}

Agent::Agent(const std::vector<Grant>& grants, Bend bend, const std::string& socket)
    : bend_(std::move(bend)) {
  for (const Grant& g : grants) {
    shm::ControlDevice& d = pages.control->devices[pages.control->device_count++];
    memcpy(d.uuid, g.uuid.data(), sizeof d.uuid);
    d.quota = g.quota;
    d.context_bytes = g.context_bytes;
    d.spill = g.spill;
    d.memory = shm::Memory::limited;
  }
  char folder[] = "/tmp/carve-agent-XXXXXX";
  if (socket.empty()) {
    require(mkdtemp(folder) != nullptr, "mkdtemp");
    socket_ = std::string(folder) + "/s";
  } else {
    socket_ = socket;
    mkdir(socket.substr(0, socket.rfind('/')).c_str(), 0700);
    unlink((socket + shm::attach_suffix).c_str());
  }
  folder_ = socket_.substr(0, socket_.rfind('/'));
  const std::string path = socket_ + shm::attach_suffix;
  listener_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  strcpy(address.sun_path, path.c_str());
  require(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0, "bind");
  require(listen(listener_, 128) == 0 && pipe2(stop_, O_CLOEXEC) == 0, "listen");
  thread_ = std::thread([this] { serve(); });
}

Agent::~Agent() {
  close(stop_[1]);
  thread_.join();
  close(stop_[0]);
  close(listener_);
  for (const Process& p : processes_) close(p.pidfd);
  unlink((socket_ + shm::attach_suffix).c_str());
  rmdir(folder_.c_str());
}

int Agent::attaches() {
  std::lock_guard lock(mutex_);
  return attaches_;
}

int Agent::living() {
  std::lock_guard lock(mutex_);
  return static_cast<int>(processes_.size());
}

void Agent::serve() {
  for (;;) {
    std::vector<pollfd> fds = {{stop_[0], POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const Process& p : processes_) fds.push_back({p.pidfd, POLLIN, 0});
    poll(fds.data(), fds.size(), -1);
    if (fds[0].revents != 0) return;
    std::lock_guard lock(mutex_);
    for (size_t i = fds.size(); i-- > 2;)
      if (fds[i].revents != 0) bury(i - 2);
    if (fds[1].revents == 0) continue;
    const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    answer(connection);
    close(connection);
  }
}

void Agent::bury(size_t index) {
  const Process dead = processes_[index];
  if (on_death) on_death(dead.pid);
  for (shm::Charges* charges : {&pages.report->charges, &pages.report->spill})
    for (int tries = 0;
         tries < 100 && !(shm::reclaim(*charges, dead.slot) && shm::leave_blocks(*charges, dead.slot));
         ++tries) {}
  shm::settle_blocks(pages.report->charges, shm::every_device, shm::Tag::agent, erase_locked);
  memset(&pages.control->processes[dead.slot], 0, sizeof(shm::ControlProcess));
  close(dead.pidfd);
  processes_.erase(processes_.begin() + static_cast<long>(index));
}

void Agent::answer(int connection) {
  shm::AttachRequest request = {};
  if (recv(connection, &request, sizeof request, 0) != sizeof request) return;
  ucred peer = {};
  socklen_t size = sizeof peer;
  getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size);
  ++attaches_;

  Process* known = nullptr;
  for (size_t i = 0; i < processes_.size(); ++i) {
    if (processes_[i].pid != peer.pid) continue;
    if (processes_[i].image != request.image) {  // The process called exec.
      bury(i);
    } else {
      known = &processes_[i];
    }
    break;
  }
  if (known == nullptr) {
    unsigned slot = 0;
    while (pages.control->processes[slot].pid != 0) ++slot;
    pages.control->processes[slot].pid = static_cast<uint32_t>(peer.pid);
    pages.control->processes[slot].inner_pid = static_cast<uint32_t>(peer.pid);
    const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, peer.pid, 0));
    if (pidfd < 0) return;
    processes_.push_back({peer.pid, pidfd, request.image, slot});
    known = &processes_.back();
  }

  shm::AttachReply reply = {};
  reply.magic = shm::attach_magic;
  reply.layout = shm::layout_version;
  reply.size = sizeof reply;
  reply.status = shm::AttachStatus::granted;
  reply.slot = known->slot;
  reply.control_size = sizeof(shm::Control);
  reply.report_size = sizeof(shm::Report);
  if (bend_ && !bend_(reply)) return;
  const int fds[3] = {pages.control_fd, pages.report_fd, pages.heartbeat_fd};
  alignas(cmsghdr) char ancillary[CMSG_SPACE(sizeof fds)] = {};
  iovec body = {&reply, sizeof reply};
  msghdr message = {};
  message.msg_iov = &body;
  message.msg_iovlen = 1;
  if (reply.status == shm::AttachStatus::granted) {
    message.msg_control = ancillary;
    message.msg_controllen = sizeof ancillary;
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fds);
    memcpy(CMSG_DATA(c), fds, sizeof fds);
  }
  sendmsg(connection, &message, MSG_NOSIGNAL);
}

}  // namespace carve::test
