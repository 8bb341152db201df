// `carve run`: runs a program in a new slice. Three processes take part:
//
//   carve run   requests the slice, forks, waits, and passes signals and the exit status through
//   its child   asks the agent to enter the slice, sets the environment that the agent returns, and executes
//               the program. The kernel tells the agent the caller's pid, so only the caller can enter.
//   the agent   finds the program's descendants by cgroup; without a cgroup, by descent from this process
//
// With a cgroup, the program survives the end of this process. Without a cgroup, this process is the
// subreaper of the program's descendants and exits after the last of them.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "cli/request.h"
#include "cli/verbs.h"

namespace carve::cli {
namespace {

struct RunOptions {
  SliceOptions slice;
  std::string wait;
};

// The child's report before it executes the program. End of file means that the program was executed.
struct ChildReport {
  enum Phase : int { entered, not_entered, not_executed } phase;
  int error;
  bool cgroup;
};

// Parses "30s", "5m", "1h". A bare "--wait" waits without a limit.
Result<std::chrono::seconds, std::string> parse_wait(const std::string& text) {
  uint64_t count = 0;
  char unit = 0, rest = 0;
  const int read = std::sscanf(text.c_str(), "%9lu%c%c", &count, &unit, &rest);
  if (read == 2 && unit == 's') return std::chrono::seconds(count);
  if (read == 2 && unit == 'm') return std::chrono::minutes(count);
  if (read == 2 && unit == 'h') return std::chrono::hours(count);
  return tl::unexpected(fmt::format("--wait: '{}' is not a time; try 30s, 5m or 1h", text));
}

// Repeats the request until it is granted or the time is over. Waiting helps only against a full device.
Answer<api::Slice> ask(const Client& client, const api::SliceRequest& request,
                       std::chrono::seconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  bool told = false;
  for (;;) {
    auto slice = client.post<api::Slice>("/v1/slices", request);
    if (slice || slice.error().type != "carve:insufficient-capacity" ||
        std::chrono::steady_clock::now() >= deadline)
      return slice;
    if (!told) fmt::print(stderr, "carve: waiting for capacity: {}\n", slice.error().detail);
    told = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
  }
}

void put_in_front(const char* variable, const std::string& value) {
  const char* old = std::getenv(variable);
  setenv(variable, old != nullptr && *old != '\0' ? (value + ":" + old).c_str() : value.c_str(), 1);
}

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

// The child's part: enters the slice, then executes the program. Returns only on failure.
[[noreturn]] void become(const Client& client, const std::string& slice,
                         const std::vector<std::string>& program, const sigset_t& signals, int report_to) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const auto entered =
      client.post<api::Entered>("/v1/slices/" + slice + "/enter",
                                api::EnterRequest{.command = joined(program),
                                                  .visible_devices = visible != nullptr ? visible : "",
                                                  .visible_devices_set = visible != nullptr});
  const auto report = [&](ChildReport::Phase phase, int error) {
    const ChildReport message{phase, error, entered && entered->cgroup};
    if (write(report_to, &message, sizeof message) != sizeof message) _exit(run_failed_status);
  };
  if (!entered) {
    complain(entered.error());
    report(ChildReport::not_entered, 0);
    _exit(run_failed_status);
  }
  for (const auto& [variable, value] : entered->environment) {
    if (variable == "LD_PRELOAD" || variable == "LD_LIBRARY_PATH")
      put_in_front(variable.c_str(), value);
    else
      setenv(variable.c_str(), value.c_str(), 1);
  }
  report(ChildReport::entered, 0);
  sigprocmask(SIG_SETMASK, &signals, nullptr);
  std::vector<char*> words;
  for (const std::string& word : program) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  report(ChildReport::not_executed, errno);
  _exit(errno == ENOENT ? 127 : 126);
}

// Signals that a user or a supervisor sends to this process for the program. The terminal sends its own
// signals (SIGINT, SIGQUIT, SIGWINCH) to the program directly. These are passed on only if a process sent
// them.
constexpr int passed_on[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT};

void pass_on(const signalfd_siginfo& got, pid_t program) {
  const bool from_terminal = got.ssi_code == SI_KERNEL;
  if (!from_terminal) kill(program, static_cast<int>(got.ssi_signo));
}

// Returns whether a shell waits for this process on a terminal. If so, this process stops when the program
// stops: the shell then shows its prompt, and `fg` continues both. Otherwise the process that stopped the
// program (a supervisor, a debugger, the agent) continues the program only, so this process must not stop.
bool is_job() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (tcgetpgrp(fd) == getpgrp()) return true;
  return false;
}

// Waits for the program, and without a cgroup for its descendants too. Returns the exit status for the shell.
int see_through(pid_t program, bool cgroup, const std::string& slice, int signals) {
  int result = run_failed_status;
  bool ended = false, told = false;
  for (;;) {
    int status = 0;
    const pid_t pid = waitpid(cgroup ? program : -1, &status, WNOHANG | WUNTRACED);
    if (pid == program && WIFSTOPPED(status)) {
      if (is_job()) {
        raise(SIGSTOP);
        kill(program, SIGCONT);
      }
      continue;
    }
    if (pid == program) {
      result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      ended = true;
    }
    if (pid > 0 && !(ended && cgroup)) continue;
    if ((pid < 0 && errno == ECHILD) || (ended && cgroup)) return result;
    if (ended && !told) {
      fmt::print(stderr,
                 "carve: the program ended, and its descendants still use slice {}; 'carve stop {}' "
                 "ends them\n",
                 slice, slice);
      told = true;
    }
    signalfd_siginfo got{};
    if (::read(signals, &got, sizeof got) != sizeof got) continue;
    if (got.ssi_signo != SIGCHLD && !ended) pass_on(got, program);
    if (ended && (got.ssi_signo == SIGTERM || got.ssi_signo == SIGINT || got.ssi_signo == SIGHUP))
      return result;
  }
}

int run(Context& context, const RunOptions& options, const std::vector<std::string>& program) {
  const auto fail = [](const std::string& sentence) {
    fmt::print(stderr, "carve: {}\n", sentence);
    return run_failed_status;
  };
  if (program.empty())
    return fail("no program is given; name it after --: carve run --memory 2GiB -- PROGRAM [ARGUMENT...]");
  std::chrono::seconds patience{0};
  if (options.wait == "forever") {
    patience = std::chrono::hours(24 * 365);
  } else if (!options.wait.empty()) {
    const auto parsed = parse_wait(options.wait);
    if (!parsed) return fail(parsed.error());
    patience = *parsed;
  }
  auto request = to_request(options.slice);
  if (!request) return fail(request.error());

  const Client client = context.client();
  const auto slice = ask(client, *request, patience);
  if (!slice) {
    complain(slice.error());
    return run_failed_status;
  }

  // Beyond this point a slice exists. It ends with its last process, or with this process if none entered.
  sigset_t before, ours;
  sigemptyset(&ours);
  sigaddset(&ours, SIGCHLD);
  for (const int s : passed_on) sigaddset(&ours, s);
  sigprocmask(SIG_BLOCK, &ours, &before);
  const int signals = signalfd(-1, &ours, SFD_CLOEXEC);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const auto give_back = [&] { (void)client.remove<api::Slice>("/v1/slices/" + slice->name); };
  if (const auto watching =
          client.post<api::Nothing>("/v1/slices/" + slice->name + "/supervise", api::Nothing{});
      !watching) {
    complain(watching.error());
    give_back();
    return run_failed_status;
  }
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) {
    give_back();
    return fail(fmt::format("cannot create a pipe: {}", std::strerror(errno)));
  }
  const pid_t child = fork();
  if (child < 0) {
    give_back();
    return fail(fmt::format("cannot start a process: {}", std::strerror(errno)));
  }
  if (child == 0) {
    close(report[0]);
    become(client, slice->name, program, before, report[1]);
  }
  close(report[1]);

  ChildReport message{};
  bool cgroup = false;
  while (::read(report[0], &message, sizeof message) == sizeof message) {
    cgroup = cgroup || message.cgroup;
    if (message.phase == ChildReport::entered && message.cgroup) prctl(PR_SET_CHILD_SUBREAPER, 0);
    if (message.phase == ChildReport::not_executed)
      fmt::print(stderr, "carve: {}: {}\n", program[0],
                 message.error == ENOENT ? "there is no such program" : std::strerror(message.error));
    if (message.phase == ChildReport::not_entered) give_back();
  }
  close(report[0]);
  return see_through(child, cgroup, slice->name, signals);
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand(
      "run", "Run a program in a new slice: carve run --memory SIZE [OPTIONS] -- PROGRAM [ARGUMENT...]");
  auto options = std::make_shared<RunOptions>();
  add_slice_options(verb, options->slice);
  verb->add_option("--name", options->slice.name, "The slice's name [the agent chooses one]");
  verb->add_flag("--wait{forever}", options->wait,
                 "Wait until the slice fits; --wait=30s, 5m or 1h limits the time");
  verb->prefix_command();
  verb->footer(
      "The program's signals and terminal pass through. Exit status: the program's own; 126 if it cannot be\n"
      "executed; 127 if there is no such program; 128+N if signal N ended it; 125 for an error of carve.\n"
      "The slice ends when the last process in it ends.\n"
      "  carve run --memory 4GiB -- python3 train.py\n"
      "  carve run --total-memory 8GiB --devices 2 -- ./two-devices\n"
      "  carve run --memory 50% --wait=5m --name nightly -- ./job");
  verb->callback([&context, verb, options] {
    context.problem_status = run_failed_status;
    std::vector<std::string> program = verb->remaining();  // "carve run --memory 2GiB ls -l" needs no "--".
    if (!program.empty() && program.front().starts_with('-')) {
      fmt::print(stderr, "carve: run has no option {}; 'carve run --help' lists them\n", program.front());
      context.status = run_failed_status;
      return;
    }
    program.insert(program.end(), context.program.begin(), context.program.end());
    context.status = run(context, *options, program);
  });
}

}  // namespace carve::cli
