#include "runner/supervision.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "os/clock.h"
#include "os/directory.h"
#include "os/process.h"
#include "runner/log_files.h"
#include "runner/runner.h"
#include "wire/api/json.h"

namespace carve::runner {
namespace {

using K = FailureKind;

Outcome<SupervisorState> read_state(const std::string& directory) {
  const auto text = os::read_file(directory + "/" + state_file_name);
  if (!text) return SupervisorState{};
  auto state = api::read<SupervisorState>(*text, api::Reading::lenient);
  if (!state) return failure(K::unavailable, "{}/{}: {}", directory, state_file_name, state.error());
  return *state;
}

Outcome<void> write_state(const std::string& directory, const SupervisorState& state) {
  return os::replace_file(directory + "/" + state_file_name, api::write(state));
}

// Makes the environment that of the request.
void set_whole_environment(const std::map<std::string, std::string>& env) {
  clearenv();
  for (const auto& [name, value] : env) setenv(name.c_str(), value.c_str(), 1);
}

int complain(const std::string& sentence, int status) {
  fmt::print(stderr, "carve-supervise: {}\n", sentence);
  return status;
}

// The program's output: both streams go through pipes to a thread that writes the log. The supervisor's own
// sentences are lines of the same log.
class Output {
 public:
  static Outcome<std::unique_ptr<Output>> open(const std::string& directory, uint32_t attempt) {
    auto log = LogWriter::open(directory + "/" + log_folder_name);
    if (!log) return tl::unexpected(log.error());
    auto out = std::unique_ptr<Output>(new Output(std::move(*log)));
    for (auto& pipe : out->pipes_)
      if (pipe2(pipe, O_CLOEXEC) != 0) return failure(K::unavailable, "no pipe: {}", strerror(errno));
    out->log_.write(LogStream::system, attempt_mark(attempt) + "\n", os::utc_ns());
    // The thread takes no signal: SIGCHLD and those for the program are for the main thread, which reads
    // them.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    out->reader_ = std::thread([o = out.get()] { o->read_until_closed(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return out;
  }
  ~Output() {
    if (reader_.joinable()) reader_.join();
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Makes the pipes this process's standard output and error.
  void take_over() {
    dup2(pipes_[0][1], STDOUT_FILENO);
    dup2(pipes_[1][1], STDERR_FILENO);
    for (auto& pipe : pipes_) ::close(pipe[1]);
  }
  // Closes this process's ends, so that the reader ends when no process has the others.
  static void release() {
    const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    ::close(null);
  }
  void add_line(const std::string& text) { log_.write(LogStream::system, text + "\n", os::utc_ns()); }
  // Waits at most a second for output of descendants that live on, which hold the pipes.
  void finish() {
    finished_ = true;
    reader_.join();
  }

 private:
  explicit Output(LogWriter log) : log_(std::move(log)) {}

  void read_until_closed();

  LogWriter log_;
  int pipes_[2][2] = {{-1, -1}, {-1, -1}};
  std::atomic<bool> finished_ = false;
  std::thread reader_;
};

void Output::read_until_closed() {
  constexpr int after_end_ms = 1000, poll_ms = 200;
  pollfd polled[] = {{pipes_[0][0], POLLIN, 0}, {pipes_[1][0], POLLIN, 0}};
  char bytes[16 << 10];
  int waited_ms = 0;
  while (polled[0].fd >= 0 || polled[1].fd >= 0) {
    const int ready = poll(polled, 2, poll_ms);
    if (ready == 0 && finished_ && (waited_ms += poll_ms) >= after_end_ms) break;
    for (size_t i = 0; i < 2 && ready > 0; ++i) {
      if (polled[i].revents == 0) continue;
      const ssize_t got = ::read(polled[i].fd, bytes, sizeof bytes);
      if (got <= 0) {
        ::close(polled[i].fd);
        polled[i].fd = -1;
      } else {
        log_.write(i == 0 ? LogStream::standard_output : LogStream::standard_error,
                   std::string_view(bytes, static_cast<size_t>(got)), os::utc_ns());
      }
    }
  }
  log_.finish(os::utc_ns());
}

}  // namespace

std::string exit_text(uint32_t status) {
  return status > 128 ? fmt::format("signal {}", status - 128) : fmt::format("exit status {}", status);
}

Outcome<SeenProgram> read_program(const std::string& directory) {
  SeenProgram out;
  const os::Fd lock(::open((directory + "/" + lock_file_name).c_str(), O_RDWR | O_CLOEXEC));
  // The lock is tried before the state is read: a supervisor that ends meanwhile has written its end.
  if (lock) {
    out.is_supervised = flock(lock.get(), LOCK_SH | LOCK_NB) != 0;
  } else if (errno != ENOENT) {
    return failure(K::unavailable, "{}/{}: {}", directory, lock_file_name, strerror(errno));
  }
  auto state = read_state(directory);
  if (!state) return tl::unexpected(state.error());
  out.state = *state;
  return out;
}

int supervise(const SuperviseRequest& request) {
  const auto lock = os::hold_lock(request.directory + "/" + lock_file_name, "supervisor", "this program");
  if (!lock) return complain(lock.error().sentence, supervised_status);
  auto state = read_state(request.directory);
  if (!state) return complain(state.error().sentence, failed_status);
  if (state->attempt >= request.attempt)
    return complain(fmt::format("attempt {} was begun before", request.attempt), begun_status);
  *state = {.attempt = request.attempt, .started_ns = os::utc_ns()};
  if (const auto written = write_state(request.directory, *state); !written)
    return complain(written.error().sentence, failed_status);
  auto output = Output::open(request.directory, request.attempt);
  if (!output) return complain(output.error().sentence, failed_status);
  (*output)->take_over();
  set_whole_environment(request.env);
  int status = failed_status;
  if (chdir(request.workdir.c_str()) != 0) {
    (*output)->add_line(fmt::format("workdir {}: {}", request.workdir, strerror(errno)));
  } else {
    const client::Client agent(request.agent_socket);
    status = run({.client = agent,
                  .slice = request.slice,
                  .program = request.command,
                  .say = [&](const std::string& text) { (*output)->add_line(text); },
                  .complain = [&](const api::Problem& p) { fmt::print(stderr, "{}\n", p.detail); },
                  .is_supervised = true,
                  .started =
                      [&](pid_t program) {
                        state->program_pid = program;
                        if (const auto stat = os::stat_of(program)) state->program_start = stat->id.start;
                        (void)write_state(request.directory, *state);
                      }});
  }
  state->ended_ns = os::utc_ns();
  state->exit_status = static_cast<uint32_t>(status);
  (*output)->add_line(fmt::format("attempt {} ended: {}", request.attempt, exit_text(state->exit_status)));
  const auto written = write_state(request.directory, *state);
  Output::release();
  (*output)->finish();
  return written ? 0 : complain(written.error().sentence, failed_status);
}

}  // namespace carve::runner
