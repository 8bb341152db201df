#include "node/inspect/inspector.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "core/invariant.h"
#include "os/clock.h"
#include "os/log.h"
#include "os/socket.h"

namespace carve::node {
namespace {

constexpr size_t max_waiting_in_group = 1024;
constexpr size_t max_known = 4096;
constexpr int64_t tick_interval_ns = 50 * os::millisecond;

// Both ends are the same executable, so the layout needs no version.
enum class What : uint32_t { inspect, open_report_page };
struct ToChild {
  What what;
  int32_t pid;
  uint64_t start;
};
struct FromChild {
  int32_t pid;
  uint64_t start;
  bool ended, maps_no_report_page;
  bool our_library, the_driver, loader, preload_asked, is_mps_server;
  uint32_t command_bytes, name_bytes;
  char command[200], name[16];
};

FromChild pack(const Inspection& seen) {
  FromChild out{};
  out.pid = seen.process.pid;
  out.start = seen.process.start;
  out.ended = seen.ended;
  out.maps_no_report_page = seen.maps_no_report_page;
  out.our_library = seen.evidence.our_library;
  out.the_driver = seen.evidence.the_driver;
  out.loader = seen.evidence.loader;
  out.preload_asked = seen.evidence.preload_asked;
  out.is_mps_server = seen.evidence.is_mps_server;
  out.command_bytes = static_cast<uint32_t>(std::min(seen.command.size(), sizeof out.command));
  memcpy(out.command, seen.command.data(), out.command_bytes);
  out.name_bytes = static_cast<uint32_t>(std::min(seen.name.size(), sizeof out.name));
  memcpy(out.name, seen.name.data(), out.name_bytes);
  return out;
}

Inspection unpack(const FromChild& in) {
  Inspection out;
  out.process = {in.pid, in.start};
  out.ended = in.ended;
  out.maps_no_report_page = in.maps_no_report_page;
  out.evidence = {.our_library = in.our_library,
                  .the_driver = in.the_driver,
                  .loader = in.loader,
                  .preload_asked = in.preload_asked,
                  .is_mps_server = in.is_mps_server};
  out.command.assign(in.command, std::min<size_t>(in.command_bytes, sizeof in.command));
  out.name.assign(in.name, std::min<size_t>(in.name_bytes, sizeof in.name));
  return out;
}

}  // namespace

int run_inspector(int socket) {
  for (;;) {
    ToChild request{};
    if (recv(socket, &request, sizeof request, 0) != static_cast<ssize_t>(sizeof request)) return 0;
    const os::ProcessId process{request.pid, request.start};
    FromChild reply{};
    int page = -1;
    os::Fd opened;
    if (request.what == What::open_report_page) {
      opened = open_report_page(process);
      page = opened.get();
      reply = pack({.process = process, .command = "", .name = "", .evidence = {}});
    } else {
      reply = pack(inspect(process));
    }
    if (!os::send_with(socket, &reply, sizeof reply, &page, page >= 0 ? 1 : 0)) return 1;
  }
}

std::optional<InspectorChild> start_inspector_child() {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return std::nullopt;
  os::Fd ours(pair[0]), theirs(pair[1]);
  const pid_t agent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    // A blocked read must end with the agent. The signal is sent when the thread that forked ends, which is
    // the loop's thread.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "carve-inspector");
    if (getppid() != agent || dup2(theirs.get(), STDIN_FILENO) < 0) _exit(127);
    execl("/proc/self/exe", "carve-inspector", "--inspect-processes", nullptr);
    _exit(127);
  }
  if (child < 0) return std::nullopt;
  os::Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  return InspectorChild{std::move(ours), std::move(pidfd), child};
}

Inspector::Inspector(os::Loop& loop, Hooks hooks) : loop_(loop), hooks_(std::move(hooks)) {
  if (!hooks_.now_ns) hooks_.now_ns = os::monotonic_ns;
}

Inspector::~Inspector() {
  drop_child();
  for (const auto& [pid, pidfd] : ended_children_) loop_.forget(pidfd.get());
}

bool Inspector::has_child() {
  if (child_) return true;
  child_ = hooks_.start();
  if (!child_) return false;
  loop_.watch(child_->socket.get(), EPOLLIN, [this](uint32_t) { receive(); });
  return true;
}

// The child is ended by the signal, at the latest when its read ends. The loop waits for it without blocking.
void Inspector::drop_child() {
  if (!child_) return;
  loop_.forget(child_->socket.get());
  if (child_->pid != 0 && child_->pidfd) {
    os::send_signal(child_->pidfd, SIGKILL);
    const pid_t pid = child_->pid;
    loop_.watch(child_->pidfd.get(), EPOLLIN, [this, pid](uint32_t) {
      const auto found = ended_children_.find(pid);
      if (found == ended_children_.end() || waitpid(pid, nullptr, WNOHANG) == 0) return;
      loop_.forget(found->second.get());
      ended_children_.erase(found);
    });
    ended_children_.emplace(pid, std::move(child_->pidfd));
  }
  child_.reset();
}

const Inspection* Inspector::known(const os::ProcessId& process) const {
  const auto found = known_.find(process);
  return found == known_.end() ? nullptr : &found->second;
}

std::string Inspector::command_of(const os::ProcessId& process) const {
  const Inspection* seen = known(process);
  return seen != nullptr && !seen->command.empty() && shows_its_program(*seen) ? seen->command
                                                                               : bracketed_name(process.pid);
}

bool Inspector::shows_its_program(const Inspection& seen) {
  const auto now = os::stat_of(seen.process.pid);
  return !now || now->id != seen.process || now->name == seen.name;
}

void Inspector::inspect(const os::ProcessId& process, uint64_t group, Done done) {
  Group& in = groups_[group];
  if (in.waiting.size() >= max_waiting_in_group || hooks_.now_ns() < in.paused_until_ns) {
    loop_.after(0, [this, process, done = std::move(done), lives = std::weak_ptr(lives_)] {
      if (!lives.expired()) answer_late(process, done);
    });
    return;
  }
  in.waiting.push_back({process, std::move(done)});
  next();
}

// Groups take turns in the order of their numbers.
void Inspector::next() {
  if (running_) return;
  std::erase_if(groups_, [now = hooks_.now_ns()](const auto& entry) {
    const Group& g = entry.second;
    return g.waiting.empty() && now > g.paused_until_ns + max_inspection_pause_ns;
  });
  auto turn = groups_.upper_bound(running_group_);
  for (size_t i = 0; i < groups_.size(); ++i, ++turn) {
    if (turn == groups_.end()) turn = groups_.begin();
    if (!turn->second.waiting.empty()) break;
  }
  if (turn == groups_.end()) turn = groups_.begin();
  if (turn == groups_.end() || turn->second.waiting.empty()) return;

  running_ = std::move(turn->second.waiting.front());
  turn->second.waiting.pop_front();
  running_group_ = turn->first;
  deadline_ns_ = hooks_.now_ns() + (running_->attempts++ == 0 ? first_inspection_ns : second_inspection_ns);
  const ToChild request{What::inspect, running_->process.pid, running_->process.start};
  was_sent_ = has_child() && send(child_->socket.get(), &request, sizeof request,
                                  MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof request;
  if (!was_sent_) drop_child();  // The second attempt, after the deadline, starts a new child.
  tick_later();
}

void Inspector::tick_later() {
  if (!running_ || std::exchange(ticks_, true)) return;
  loop_.after(tick_interval_ns, [this, lives = std::weak_ptr(lives_)] {
    if (lives.expired()) return;
    ticks_ = false;
    tick();
  });
}

void Inspector::tick() {
  if (running_ && hooks_.now_ns() >= deadline_ns_) {
    drop_child();
    fail(std::move(*std::exchange(running_, std::nullopt)), running_group_);
    next();
  }
  tick_later();
}

void Inspector::receive() {
  FromChild reply{};
  const ssize_t size = recv(child_->socket.get(), &reply, sizeof reply, MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size != static_cast<ssize_t>(sizeof reply))
    return drop_child();  // The child ended; tick() notices the deadline.
  if (!running_ || reply.pid != running_->process.pid || reply.start != running_->process.start) return;
  const Request request = std::move(*std::exchange(running_, std::nullopt));
  const Inspection seen = unpack(reply);
  keep(seen);
  request.done(seen);
  next();
}

void Inspector::fail(Request request, uint64_t group) {
  Group& in = groups_[group];
  if (request.attempts < 2) return in.waiting.push_back(std::move(request));
  if (!was_sent_) {
    os::log::error(Cause{.who = "inspector"},
                   "cannot start the inspector's child process; process {} is not inspected",
                   request.process.pid);
    return answer_late(request.process, request.done);
  }
  in.pause_ns = std::clamp(2 * in.pause_ns, min_inspection_pause_ns, max_inspection_pause_ns);
  in.paused_until_ns = hooks_.now_ns() + in.pause_ns;
  const std::deque<Request> waiting = std::exchange(in.waiting, {});
  const Inspection* const before = known(request.process);
  const bool first = before == nullptr || !before->late;
  answer_late(request.process, request.done);
  if (first && hooks_.late) hooks_.late(*known(request.process), group);
  for (const Request& other : waiting) answer_late(other.process, other.done);
}

void Inspector::answer_late(const os::ProcessId& process, const Done& done) {
  const auto stat = os::stat_of(process.pid);
  Inspection late{.process = process,
                  .late = true,
                  .command = bracketed_name(process.pid),
                  .name = stat ? stat->name : "",
                  .evidence = {}};
  late.evidence.unreadable = true;
  keep(late);
  done(late);
}

void Inspector::keep(Inspection seen) {
  seen.at_ns = hooks_.now_ns();
  // Live processes are inspected again when needed.
  if (known_.size() >= max_known) known_.clear();
  known_.insert_or_assign(seen.process, std::move(seen));
}

os::Fd Inspector::open_report_page(const os::ProcessId& process) {
  invariant(!running_, "pages are opened before the loop runs");
  const ToChild request{What::open_report_page, process.pid, process.start};
  if (!has_child() ||
      send(child_->socket.get(), &request, sizeof request, MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof request) {
    drop_child();
    return {};
  }
  pollfd answer{child_->socket.get(), POLLIN, 0};
  FromChild reply{};
  os::Fd page;
  const bool answered = poll(&answer, 1, static_cast<int>(second_inspection_ns / os::millisecond)) == 1 &&
                        os::receive_with(child_->socket.get(), &reply, sizeof reply, &page, 1) ==
                            static_cast<ssize_t>(sizeof reply);
  if (!answered) drop_child();
  return page;
}

}  // namespace carve::node
