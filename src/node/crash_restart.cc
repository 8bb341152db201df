#include "node/crash_restart.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "os/clock.h"
#include "os/log.h"

namespace carve::node {
namespace {

sigset_t awaited_signals() {
  sigset_t out;
  sigemptyset(&out);
  for (const int signal : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&out, signal);
  return out;
}

// Returns the wait status of the agent once it has ended. Also reaps orphans that have ended, because in a
// container this process may be their parent.
std::optional<int> reap(pid_t agent) {
  std::optional<int> out;
  int status = 0;
  for (pid_t ended = 0; (ended = waitpid(-1, &status, WNOHANG)) > 0;)
    if (ended == agent) out = status;
  return out;
}

// Waits until the agent has ended and passes on signals to it. SIGTERM and SIGINT also set `asked_to_end`.
int wait_for(pid_t agent, const sigset_t& awaited, bool& asked_to_end) {
  for (;;) {
    if (const auto status = reap(agent)) return *status;
    const int signal = sigwaitinfo(&awaited, nullptr);
    if (signal != SIGTERM && signal != SIGINT) continue;
    asked_to_end = true;
    kill(agent, signal);
  }
}

// Returns false if SIGTERM or SIGINT arrives before the time is over.
bool pause_for(int64_t ns, const sigset_t& awaited) {
  const int64_t until = os::monotonic_ns() + ns;
  for (;;) {
    const int64_t left = std::max<int64_t>(until - os::monotonic_ns(), 0);
    const timespec limit{left / os::second, left % os::second};
    const int signal = sigtimedwait(&awaited, nullptr, &limit);
    if (signal == SIGTERM || signal == SIGINT) return false;
    if (signal < 0 && errno == EAGAIN) return true;
  }
}

// Makes this process the agent. The agent ends with its parent, because another agent could not start while
// this one holds the lock of the state.
void become_agent(pid_t parent, const sigset_t& mask) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
}

}  // namespace

std::optional<int64_t> RestartDelay::after_crash(int64_t ran_ns) {
  crashes_ = ran_ns >= healthy_run_ns ? 1 : crashes_ + 1;
  if (crashes_ > max_crashes) return std::nullopt;
  return std::min(first_restart_delay_ns << (crashes_ - 1), max_restart_delay_ns);
}

std::optional<int> restart_after_crashes() {
  const sigset_t awaited = awaited_signals();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &awaited, &before);
  const pid_t parent = getpid();
  RestartDelay delay;
  for (bool asked_to_end = false;;) {
    const int64_t started = os::monotonic_ns();
    const pid_t agent = fork();
    if (agent < 0) {
      os::log::error("cannot start the agent: {}", strerror(errno));
      return 1;
    }
    if (agent == 0) {
      become_agent(parent, before);
      return std::nullopt;
    }
    const int status = wait_for(agent, awaited, asked_to_end);
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    const int signal = WTERMSIG(status);
    const auto wait = delay.after_crash(os::monotonic_ns() - started);
    if (asked_to_end || !wait) return 128 + signal;
    os::log::error("the agent was ended by signal {}; it will be restarted in {} ms", signal,
                   *wait / os::millisecond);
    if (!pause_for(*wait, awaited)) return 0;
  }
}

}  // namespace carve::node
