#include "runner/runner.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "os/fd.h"
#include "wire/api/problem.h"
#include "wire/api/slice.h"

namespace carve::runner {
namespace {

// The child's report before it executes the program. End of file means that the program was executed.
struct ChildReport {
  enum Phase : int { entered, not_entered, not_executed } phase;
  int error;
  bool cgroup;
};

// Signals that a user or a supervisor sends to this process for the program. The terminal sends its own
// signals (SIGINT, SIGQUIT, SIGWINCH) to the program directly. These are passed on only if a process sent
// them.
constexpr int passed_on[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT};

// Blocks the signals that this process passes on, and SIGCHLD, and reads them from a descriptor.
class Signals {
 public:
  Signals() {
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGCHLD);
    for (const int s : passed_on) sigaddset(&ours, s);
    sigprocmask(SIG_BLOCK, &ours, &before_);
    fd_ = os::Fd(signalfd(-1, &ours, SFD_CLOEXEC));
  }
  ~Signals() { restore(); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int fd() const { return fd_.get(); }
  void restore() const { sigprocmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
  os::Fd fd_;
};

constexpr int max_away_tries = 300;  // For 30 s: an agent that is replaced is back by then.
constexpr timespec away_interval{.tv_sec = 0, .tv_nsec = 100'000'000};

// Posts to the agent; of a supervised program again, while the agent is away. Its slice outlives the agent,
// and the request may be repeated.
template <class T, class Body>
client::Answer<T> post_patiently(const Run& run, const std::string& verb, const Body& body) {
  for (int tries = 0;; ++tries) {
    auto answer = run.client.post<T>("/v1/slices/" + run.slice + verb, body);
    const bool is_away =
        !answer && (answer.error().type == "carve:no-agent" || answer.error().type == "carve:no-response");
    if (!is_away || !run.is_supervised || tries == max_away_tries) return answer;
    nanosleep(&away_interval, nullptr);
  }
}

// Enters the slice and sets its environment. Returns the answer, of a program without a slice an empty one.
client::Answer<api::Entered> enter(const Run& run) {
  if (run.slice.empty()) return api::Entered{};
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  auto entered = post_patiently<api::Entered>(
      run, "/enter",
      api::EnterRequest{.command = fmt::format("{}", fmt::join(run.program, " ")),
                        .visible_devices = visible != nullptr ? visible : "",
                        .visible_devices_set = visible != nullptr});
  if (entered) set_environment(entered->environment);
  return entered;
}

// The child's part: enters the slice, then executes the program. Returns only on failure.
[[noreturn]] void become(const Run& run, const Signals& signals, pid_t parent, int report_to, int started) {
  if (run.is_supervised) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // Without its supervisor the end of the program would not be known.
    if (getppid() != parent) _exit(failed_status);  // It was killed before, which sends no signal.
  }
  // Waits until the parent has recorded this process. A parent that is killed before closes the pipe.
  char go = 0;
  if (::read(started, &go, 1) != 1) _exit(failed_status);
  if (const auto prepared = run.prepare ? run.prepare() : Outcome<void>(); !prepared) {
    run.say(prepared.error().sentence);
    _exit(failed_status);
  }
  const auto entered = enter(run);
  const auto report = [&](ChildReport::Phase phase, int error) {
    const ChildReport message{phase, error, entered && entered->cgroup};
    if (write(report_to, &message, sizeof message) != sizeof message) _exit(failed_status);
  };
  if (!entered) {
    run.complain(entered.error());
    report(ChildReport::not_entered, 0);
    _exit(failed_status);
  }
  report(ChildReport::entered, 0);
  signals.restore();
  std::vector<char*> words;
  for (const std::string& word : run.program) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  report(ChildReport::not_executed, errno);
  _exit(errno == ENOENT ? no_program_status : not_executable_status);
}

void pass_on(const Run& run, const signalfd_siginfo& got, pid_t program) {
  const bool from_terminal = got.ssi_code == SI_KERNEL;
  if (!from_terminal) kill(run.is_supervised ? -program : program, static_cast<int>(got.ssi_signo));
}

// Returns whether a shell waits for this process on a terminal. If so, this process stops when the program
// stops: the shell then shows its prompt, and `fg` continues both. Otherwise the process that stopped the
// program (a supervisor, a debugger, the agent) continues the program only, so this process must not stop.
bool is_job() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (tcgetpgrp(fd) == getpgrp()) return true;
  return false;
}

// Returns a child that has ended or stopped, with its status; 0: there is none now; -1: there is no child.
// Before a supervised program that has ended is waited for, the rest of its process group is killed: until
// then no other group can have the number.
pid_t changed_child(const Run& run, pid_t program, bool cgroup, int& status) {
  siginfo_t seen{};
  constexpr int changes = WEXITED | WSTOPPED | WNOHANG;
  const bool adopts = !cgroup || run.is_supervised;
  if (waitid(adopts ? P_ALL : P_PID, static_cast<id_t>(program), &seen, changes | WNOWAIT) != 0) return -1;
  if (seen.si_pid == 0) return 0;
  if (run.is_supervised && seen.si_pid == program && seen.si_code != CLD_STOPPED) kill(-program, SIGKILL);
  return waitpid(seen.si_pid, &status, WNOHANG | WUNTRACED);
}

// Waits for the program, and without a cgroup for its descendants too, unless it is supervised: the agent
// ends what a supervisor leaves behind. Returns the exit status.
int see_through(const Run& run, pid_t program, bool cgroup, int signals) {
  int result = failed_status;
  bool ended = false, told = false;
  for (;;) {
    int status = 0;
    const pid_t pid = changed_child(run, program, cgroup, status);
    if (pid == program && WIFSTOPPED(status)) {
      if (is_job()) {
        raise(SIGSTOP);
        kill(program, SIGCONT);
      }
      continue;
    }
    if (pid == program) {
      result = exit_status(status);
      ended = true;
      if (run.ended) run.ended(status);
    }
    const bool is_over = ended && (cgroup || run.is_supervised);
    if (pid > 0 && !is_over) continue;
    if ((pid < 0 && errno == ECHILD) || is_over) return result;
    if (ended && !told) {
      run.say(fmt::format(
          "the program ended, and its descendants still use slice {0}; 'carve stop {0}' ends them",
          run.slice));
      told = true;
    }
    signalfd_siginfo got{};
    if (::read(signals, &got, sizeof got) != sizeof got) continue;
    if (got.ssi_signo != SIGCHLD && !ended) pass_on(run, got, program);
    if (ended && (got.ssi_signo == SIGTERM || got.ssi_signo == SIGINT || got.ssi_signo == SIGHUP))
      return result;
  }
}

}  // namespace

void set_environment(const std::map<std::string, std::string>& environment) {
  for (const auto& [variable, value] : environment) {
    const char* old = std::getenv(variable.c_str());
    const bool list = variable == "LD_PRELOAD" || variable == "LD_LIBRARY_PATH";
    const bool in_front = list && old != nullptr && *old != '\0';
    setenv(variable.c_str(), in_front ? (value + ":" + old).c_str() : value.c_str(), 1);
  }
}

int exit_status(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

int run(const Run& run) {
  // The slice ends with its last process, or with this process if none entered.
  const auto give_back = [&] {
    if (!run.is_supervised && !run.slice.empty())
      (void)run.client.remove<api::Slice>("/v1/slices/" + run.slice);
    return failed_status;
  };
  const auto fail = [&](const char* what) {
    run.say(fmt::format("{}: {}", what, std::strerror(errno)));
    return give_back();
  };
  const Signals signals;
  // All descendants of a supervised program stay below its supervisor, so that the owner of a listening
  // socket is found there.
  if (run.is_supervised || !run.slice.empty()) prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (!run.slice.empty()) {
    const auto watching = post_patiently<api::Nothing>(run, "/supervise", api::Nothing{});
    if (!watching) {
      run.complain(watching.error());
      return give_back();
    }
  }
  int ends[2], back[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return fail("cannot create a pipe");
  os::Fd from_child(ends[0]), to_parent(ends[1]);
  if (pipe2(back, O_CLOEXEC) != 0) return fail("cannot create a pipe");
  os::Fd from_parent(back[0]), to_child(back[1]);
  const pid_t own = getpid();
  const pid_t child = fork();
  if (child < 0) return fail("cannot start a process");
  if (child == 0) {
    to_child.reset();
    become(run, signals, own, to_parent.get(), from_parent.get());
  }
  to_parent.reset();
  if (run.started) run.started(child);
  if (write(to_child.get(), "", 1) != 1) run.say("the program's process was killed before it was executed");
  to_child.reset();
  from_parent.reset();  // Only now: a write to a pipe without a reader would end this process.

  ChildReport message{};
  bool cgroup = run.slice.empty();  // Without a slice, no descendants are waited for.
  while (::read(from_child.get(), &message, sizeof message) == sizeof message) {
    cgroup = cgroup || message.cgroup;
    if (message.phase == ChildReport::entered && message.cgroup && !run.is_supervised)
      prctl(PR_SET_CHILD_SUBREAPER, 0);
    if (message.phase == ChildReport::not_executed)
      run.say(
          fmt::format("{}: {}", run.program[0],
                      message.error == ENOENT ? "there is no such program" : std::strerror(message.error)));
    if (message.phase == ChildReport::not_entered) give_back();
  }
  return see_through(run, child, cgroup, signals.fd());
}

}  // namespace carve::runner
