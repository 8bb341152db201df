#include "runner/runner.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "os/fd.h"
#include "wire/api/problem.h"
#include "wire/api/slice.h"

namespace carve::runner {
namespace {

// The child's report before it executes the program. An end of file means that the program was executed.
struct ChildReport {
  enum Phase : int { entered, not_entered, not_executed } phase;
  int error;
  bool cgroup;
};

// Signals that a user or a supervisor sends to this process for the program. The terminal also sends its
// signals (SIGINT, SIGQUIT, SIGWINCH) to the program directly, so those are passed on only if a process sent
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

constexpr int max_away_tries = 300;  // 30 s: a new agent has taken over by then.
constexpr timespec away_interval{.tv_sec = 0, .tv_nsec = 100'000'000};

// Calls the agent. For a supervised program it retries while the agent is unavailable, because the slice
// outlives the agent and the request may be repeated.
template <class Call>
auto call_patiently(const Run& run, Call call) {
  for (int tries = 0;; ++tries) {
    auto answer = call(run.agent);
    const bool is_away =
        !answer && (answer.error().type == "carve:no-agent" || answer.error().type == "carve:no-response");
    if (!is_away || !run.is_supervised || tries == max_away_tries) return answer;
    nanosleep(&away_interval, nullptr);
  }
}

// Returns the CUDA_VISIBLE_DEVICES of a program that has entered: device numbers within the slice, because
// programs such as vLLM parse them as numbers, and the guest library counts in the same way
// (guest/context/visible_devices.h). `entered` contains the UUIDs that the agent selected, or all devices of
// the slice if the caller's environment has no list.
std::string program_list(const Run& run, const std::string& entered, bool has_list) {
  std::vector<std::string> left;
  for (size_t at = 0; !entered.empty() && at <= entered.size();) {
    const size_t end = std::min(entered.find(',', at), entered.size());
    left.push_back(entered.substr(at, end - at));
    at = end + 1;
  }
  const std::vector<std::string>& all = has_list ? run.devices : left;
  std::string out;
  for (const std::string& uuid : left) {
    const auto position = std::ranges::find(all, uuid);
    if (position == all.end()) return entered;
    out += fmt::format("{}{}", out.empty() ? "" : ",", position - all.begin());
  }
  return out;
}

// Enters the slice and sets its environment. Returns the agent's response, which is empty for a program
// without a slice. The numbers in a caller's CUDA_VISIBLE_DEVICES are those of the node's devices; in a
// document they are those of the slice. The list of a program that itself runs in a slice refers to that
// slice, not to the new one.
client::Answer<api::Entered> enter(const Run& run) {
  if (run.slice.empty()) return api::Entered{};
  const char* const given = std::getenv("CUDA_VISIBLE_DEVICES");
  const bool has_document = run.is_supervised && !run.is_detached;
  const bool has_list = !has_document && !run.joins && std::getenv(slice_variable) == nullptr;
  const char* const visible = has_list ? given : nullptr;
  const std::string of_document = has_document && given != nullptr ? given : "";
  const api::EnterRequest request{.command = fmt::format("{}", fmt::join(run.program, " ")),
                                  .visible_devices = visible != nullptr ? visible : "",
                                  .visible_devices_set = visible != nullptr,
                                  .joins = run.joins};
  auto entered =
      call_patiently(run, [&](const client::AgentClient& agent) { return agent.enter(run.slice, request); });
  if (!entered) return entered;
  if (const auto list = entered->environment.find("CUDA_VISIBLE_DEVICES"); list != entered->environment.end())
    list->second = of_document.empty() ? program_list(run, list->second, visible != nullptr) : of_document;
  entered->environment[slice_variable] = run.slice;
  set_environment(entered->environment);
  return entered;
}

// The child's part: enters the slice, then executes the program. Returns only on failure.
[[noreturn]] void become(const Run& run, const Signals& signals, pid_t parent, int report_to, int started) {
  if (run.is_supervised) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);               // Otherwise its exit status would be lost.
    if (getppid() != parent) _exit(failed_status);  // The parent was killed earlier, so no signal arrives.
  }
  // Waits until the parent has recorded this process. If the parent is killed first, the pipe is closed.
  char go = 0;
  if (::read(started, &go, 1) != 1) _exit(failed_status);
  if (const auto prepared = run.prepare ? run.prepare() : Outcome<void>(); !prepared) {
    run.say(prepared.error().message);
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
// program (a supervisor, a debugger, the agent) continues only the program, so this process must not stop.
bool is_job() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (tcgetpgrp(fd) == getpgrp()) return true;
  return false;
}

// Returns a child that has ended or stopped, with its status. Returns 0 if there is none now, and -1 if there
// are no children. When a supervised program has ended, the rest of its process group is killed before the
// program is waited for, because until then no other group can get its number.
pid_t changed_child(const Run& run, pid_t program, bool cgroup, int& status) {
  siginfo_t seen{};
  constexpr int changes = WEXITED | WSTOPPED | WNOHANG;
  const bool adopts = !cgroup || run.is_supervised;
  if (waitid(adopts ? P_ALL : P_PID, static_cast<id_t>(program), &seen, changes | WNOWAIT) != 0) return -1;
  if (seen.si_pid == 0) return 0;
  if (run.is_supervised && seen.si_pid == program && seen.si_code != CLD_STOPPED) kill(-program, SIGKILL);
  return waitpid(seen.si_pid, &status, WNOHANG | WUNTRACED);
}

// Waits for the program and, if there is no cgroup, for its descendants, unless it is supervised: the agent
// ends the processes that a supervisor leaves behind. Returns the exit status.
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
          "the program ended, but its descendants still use slice {0}; 'carve stop {0}' ends them",
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
  // The slice ends with its last process, or with this process if no process entered it.
  const auto give_back = [&] {
    if (!run.is_supervised && !run.joins && !run.slice.empty()) (void)run.agent.end(run.slice);
    return failed_status;
  };
  const auto fail = [&](const char* what) {
    run.say(fmt::format("{}: {}", what, std::strerror(errno)));
    return give_back();
  };
  const Signals signals;
  // Keeps all descendants of a supervised program below its supervisor, so that the owner of a listening
  // socket can be found there.
  if (run.is_supervised || (!run.slice.empty() && !run.joins)) prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (!run.slice.empty() && !run.joins) {
    const auto watching = call_patiently(run, [&](const client::AgentClient& agent) {
      return agent.supervise(run.slice, {.keeps = run.keeps_slice});
    });
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
  if (write(to_child.get(), "", 1) != 1)
    run.say(fmt::format("cannot start the program: {}", strerror(errno)));
  to_child.reset();
  from_parent.reset();  // Kept until now, because writing to a pipe without a reader would end this process.

  ChildReport message{};
  bool cgroup = run.slice.empty();  // Without a slice, no descendants are waited for.
  bool has_entered = false, has_failed = false;
  while (::read(from_child.get(), &message, sizeof message) == sizeof message) {
    cgroup = cgroup || message.cgroup;
    has_entered = true;
    has_failed = has_failed || message.phase != ChildReport::entered;
    if (message.phase == ChildReport::entered && message.cgroup && !run.is_supervised)
      prctl(PR_SET_CHILD_SUBREAPER, 0);
    if (message.phase == ChildReport::not_executed)
      run.say(
          fmt::format("{}: {}", run.program[0],
                      message.error == ENOENT ? "there is no such program" : std::strerror(message.error)));
    if (message.phase == ChildReport::not_entered) give_back();
  }
  if (run.executed && has_entered && !has_failed) run.executed();
  return see_through(run, child, cgroup, signals.fd());
}

}  // namespace carve::runner
