#include "controller/runtime/program_ends.h"

#include <sys/epoll.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "core/invariant.h"
#include "os/clock.h"

namespace carve::controller {
namespace {

// Returns whether another pidfd may be opened. Pidfds may use a quarter of the limit of open files; the API's
// connections need the rest.
bool has_room(size_t watched) {
  rlimit files{};
  return getrlimit(RLIMIT_NOFILE, &files) == 0 && watched < files.rlim_cur / 4;
}

bool add(const os::Fd& poll, int fd) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
  return epoll_ctl(poll.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

}  // namespace

ProgramEnds::ProgramEnds() : poll_(epoll_create1(EPOLL_CLOEXEC)) {
  invariant(poll_ && woken_.is_open() && add(poll_, woken_.fd()), "a controller that starts has descriptors");
}

ProgramEnds::~ProgramEnds() = default;

bool ProgramEnds::has_ended(const std::string& program, const os::ProcessId& process) {
  if (!process) return false;
  Known& known = known_[program];
  if (known.process == process) return known.has_ended;
  close(known);
  known.process = process;
  known.has_ended = false;
  watch(program, known);
  return false;
}

void ProgramEnds::watch(const std::string& program, Known& known) {
  if (!has_room(names_.size())) return;
  known.pidfd = os::open_process(known.process);
  if (!known.pidfd) return;
  if (!add(poll_, known.pidfd.get())) return known.pidfd.reset();
  names_[known.pidfd.get()] = program;
}

// Removes the descriptor from the set before closing it, because a child that is just being started may have
// a copy.
void ProgramEnds::close(Known& known) {
  if (!known.pidfd) return;
  epoll_ctl(poll_.get(), EPOLL_CTL_DEL, known.pidfd.get(), nullptr);
  names_.erase(known.pidfd.get());
  known.pidfd.reset();
}

void ProgramEnds::forget(const std::string& program) {
  const auto found = known_.find(program);
  if (found == known_.end()) return;
  close(found->second);
  known_.erase(found);
}

// Records the end. Returns whether it may end the wait.
bool ProgramEnds::take_end(int pidfd, int64_t now_ns) {
  const auto name = names_.find(pidfd);
  if (name == names_.end()) return false;
  Known& known = known_.at(name->second);
  close(known);
  known.has_ended = true;
  if (!may_wake(known.woke_ns, now_ns)) return false;
  known.woke_ns = now_ns;
  return true;
}

ProgramEnds::Woken ProgramEnds::wait(int64_t interval_ns) {
  const int64_t deadline = os::monotonic_ns() + interval_ns;
  for (int64_t now = os::monotonic_ns();; now = os::monotonic_ns()) {
    const int64_t left_ms = (std::max<int64_t>(deadline - now, 0) + os::millisecond - 1) / os::millisecond;
    std::array<epoll_event, 64> events;
    const int got = epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()),
                               static_cast<int>(std::min<int64_t>(left_ms, 3'600'000)));
    bool ended = false, called = false;
    for (int i = 0; i < got; ++i) {
      const int fd = events[static_cast<size_t>(i)].data.fd;
      if (fd == woken_.fd())
        called = woken_.take();
      else
        ended |= take_end(fd, os::monotonic_ns());
    }
    if (ended) return Woken::by_end;
    if (called) return Woken::by_call;
    if (os::monotonic_ns() >= deadline) return Woken::at_interval;
  }
}

void ProgramEnds::wake() { woken_.set(); }

}  // namespace carve::controller
