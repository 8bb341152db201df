#include "runner/supervision.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "os/clock.h"
#include "os/directory.h"
#include "os/process.h"
#include "runner/log_files.h"
#include "runner/program_output.h"
#include "runner/replica_cgroup.h"
#include "runner/runner.h"
#include "wire/api/slice.h"

namespace carve::runner {
namespace {

// Replaces the whole environment by that of the request.
void set_whole_environment(const std::map<std::string, std::string>& env) {
  clearenv();
  for (const auto& [name, value] : env) setenv(name.c_str(), value.c_str(), 1);
}

int complain(const std::string& message, int status) {
  fmt::print(stderr, "carve-supervise: {}\n", message);
  return status;
}

// Kills the rest of a program's process group after its supervisor was killed. A group with this number in
// the supervisor's session must be the same group, because neither number is reused while the group has a
// process.
void kill_remains(const SupervisorState& before) {
  if (before.ended_ns != 0 || before.program_pid == 0 || before.boot_id != os::boot_id()) return;
  const auto now = os::stat_of(before.supervisor_pid);
  if (now && now->id.start != before.supervisor_start) return;  // The pid now belongs to another process.
  for (const os::ProcessStat& process : os::all_processes()) {
    if (process.session != before.supervisor_pid || process.group != before.program_pid) continue;
    kill(-before.program_pid, SIGKILL);
    return;
  }
}

SupervisorState begun_state(uint32_t attempt) {
  const auto own = os::stat_of(getpid());
  return {.attempt = attempt,
          .started_ns = os::utc_ns(),
          .supervisor_pid = getpid(),
          .supervisor_start = own ? own->id.start : 0,
          .boot_id = os::boot_id()};
}

// Only the program's process joins the cgroups, so that a memory limit never kills its supervisor. The kernel
// checks the rights of the launcher, which opened the files.
Outcome<void> join_cgroups(uint32_t files) {
  for (uint32_t i = 0; i < files; ++i)
    if (write(first_cgroup_file + static_cast<int>(i), "0", 1) != 1)
      return failure(FailureKind::unavailable, "the program cannot join the cgroup of its limits: {}",
                     strerror(errno));
  return {};
}

// Closes the files when the program is executed, so that the program inherits none of them.
void close_files_at_exec(uint32_t files) {
  for (uint32_t i = 0; i < files; ++i) fcntl(first_cgroup_file + static_cast<int>(i), F_SETFD, FD_CLOEXEC);
}

uint64_t memory_kills_of(const SuperviseRequest& request) {
  if (request.memory_events.empty()) return 0;
  return memory_kills(os::read_file(request.memory_events).value_or(""));
}

bool enter_workdir(const SuperviseRequest& request) {
  if (!request.workdir.empty()) return chdir(request.workdir.c_str()) == 0;
  const auto home = request.env.find("HOME");
  return (home != request.env.end() && chdir(home->second.c_str()) == 0) || chdir("/") == 0;
}

// Reports the start to `carve run -d`, which may have been killed in the meantime.
void report_start(os::Fd& socket) {
  if (socket) send(socket.get(), start_report.data(), start_report.size(), MSG_NOSIGNAL);
  socket.reset();
}

// Ends the slice of a detached program with the program's remaining processes. The slice usually ends by
// itself at the same moment, and a later slice may already have its name. A slice that is kept for restarts
// ends with this process.
void end_slice(const SuperviseRequest& request) {
  if (!request.is_detached || request.slice.empty() || request.max_restarts != 0) return;
  const client::AgentClient agent(request.agent_socket);
  const auto slice = agent.slice(request.slice);
  if (slice && slice->created_ns == request.slice_created_ns && slice->ended_ns == 0)
    (void)agent.end(request.slice);
}

// Runs the program and fills in the state, which is written once the program has a process. Returns whether
// the program was executed.
bool run_program(const SuperviseRequest& request, const std::string& directory, ProgramOutput& output,
                 os::Fd& start_socket, SupervisorState& state) {
  if (!enter_workdir(request)) {
    output.add_line(fmt::format("workdir {}: {}", request.workdir, strerror(errno)));
    state.exit_status = failed_status;
    return false;
  }
  bool has_executed = false;
  const client::AgentClient agent(request.agent_socket);
  const auto started = [&](pid_t program) {
    state.program_pid = program;
    state.started_ns = os::utc_ns();
    if (const auto stat = os::stat_of(program)) state.program_start = stat->id.start;
    if (const auto written = write_state(directory, state); !written)
      output.add_line(written.error().message);
    output.begin();
  };
  const int status = run({.agent = agent,
                          .slice = request.slice,
                          .program = request.command,
                          .say = [&](const std::string& text) { output.add_line(text); },
                          .complain = [&](const api::Problem& p) { fmt::print(stderr, "{}\n", p.detail); },
                          .is_supervised = true,
                          .is_detached = request.is_detached,
                          .keeps_slice = request.max_restarts != 0,
                          .prepare =
                              [&] {
                                if (request.is_detached) {
                                  umask(request.program_umask);
                                  for (const auto& [name, value] : request.env)
                                    setenv(name.c_str(), value.c_str(), 1);
                                }
                                return join_cgroups(request.cgroup_files);
                              },
                          .started = started,
                          .executed =
                              [&] {
                                report_start(start_socket);
                                has_executed = true;
                              },
                          .ended =
                              [&](int wait_status) {
                                if (WIFSIGNALED(wait_status))
                                  state.signal = static_cast<uint32_t>(WTERMSIG(wait_status));
                              },
                          .devices = request.devices});
  state.exit_status = static_cast<uint32_t>(status);
  return has_executed;
}

// Returns whether the slice can get another program.
bool is_slice_live(const SuperviseRequest& request) {
  if (request.slice.empty()) return true;
  const auto slice = client::AgentClient(request.agent_socket).slice(request.slice);
  return slice && slice->created_ns == request.slice_created_ns && slice->ended_ns == 0 &&
         slice->state != SliceState::stopping;
}

// Starts a detached program that has failed again, as often as the request allows. Its output is one log with
// a mark for each attempt. The output's thread ends before the next fork.
Outcome<void> restart_program(const SuperviseRequest& request, const std::string& directory,
                              std::unique_ptr<ProgramOutput>& output, SupervisorState& state) {
  os::Fd no_socket;
  for (uint32_t restart = 0;; ++restart) {
    const auto delay = restart_delay(state, restart, request.max_restarts);
    if (!delay || !is_slice_live(request)) return {};
    output->finish();
    output->add_line(fmt::format("{}; starting the program again in {} ms, restart {} of {}",
                                 exit_text(state), delay->count(), restart + 1, request.max_restarts));
    std::this_thread::sleep_for(*delay);
    auto next = ProgramOutput::open(directory + "/" + log_folder_name);
    if (!next) return tl::unexpected(next.error());
    output = std::move(*next);
    const SupervisorState before = state;
    state = begun_state(before.attempt + 1);
    if (const auto written = write_state(directory, state); !written) return written;
    output->add_line(attempt_mark(state.attempt));
    output->redirect();
    if (run_program(request, directory, *output, no_socket, state)) continue;
    // The slice has ended in the meantime: the last program's end is the outcome.
    const uint32_t attempt = state.attempt;
    state = before;
    state.attempt = attempt;
    return {};
  }
}

// Ignores the exit status: the next start replaces anything that was not removed.
void clean_up(const std::vector<std::string>& command) {
  if (command.empty()) return;
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_t pid = 0;
  if (posix_spawnp(&pid, words[0], nullptr, nullptr, words.data(), environ) != 0) return;
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {}
}

}  // namespace

std::optional<std::chrono::milliseconds> restart_delay(const SupervisorState& ended, uint32_t restart,
                                                       uint32_t max_restarts) {
  constexpr std::chrono::milliseconds first{100}, longest{60'000};
  constexpr uint32_t max_doublings = 10;  // 102 s, which is more than the longest delay.
  if (ended.exit_status == 0 || restart >= max_restarts) return std::nullopt;
  return std::min(first * (1U << std::min(restart, max_doublings)), longest);
}

int supervise(const SuperviseRequest& request) {
  os::Fd start_socket;
  if (request.is_detached) {
    umask(077);
    start_socket = os::Fd(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
  }
  close_files_at_exec(request.cgroup_files + (request.has_liveness_file ? 1 : 0));
  // Opened first, because the program's user may have no rights to the folders above the directory, and the
  // working directory changes.
  const os::Fd folder(open(request.directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return complain(fmt::format("{}: {}", request.directory, strerror(errno)), failed_status);
  const std::string directory = fmt::format("/proc/self/fd/{}", folder.get());

  const auto lock =
      os::hold_lock(directory + "/" + lock_file_name, "supervisor", "this program", program_file_mode);
  if (!lock) return complain(lock.error().message, supervised_status);
  if (const auto held = hold_liveness(lock->get()); !held)
    return complain(held.error().message, failed_status);
  auto state = read_state(directory);
  if (!state) return complain(state.error().message, failed_status);
  if (state->attempt >= request.attempt)
    return complain(fmt::format("attempt {} was already started", request.attempt), begun_status);
  kill_remains(*state);
  auto output = ProgramOutput::open(directory + "/" + log_folder_name);
  if (!output) return complain(output.error().message, failed_status);

  // The attempt is recorded. Beyond this point no other supervisor starts the program for it.
  *state = begun_state(request.attempt);
  if (const auto written = write_state(directory, *state); !written)
    return complain(written.error().message, failed_status);
  (*output)->add_line(attempt_mark(request.attempt));
  (*output)->redirect();
  const os::Fd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  dup2(null.get(), STDIN_FILENO);
  if (!request.is_detached) set_whole_environment(request.env);
  const uint64_t kills_before = memory_kills_of(request);
  if (run_program(request, directory, **output, start_socket, *state))
    if (const auto restarted = restart_program(request, directory, *output, *state); !restarted)
      (*output)->add_line(restarted.error().message);
  if (memory_kills_of(request) > kills_before) state->exceeded_memory_bytes = request.memory_limit_bytes;

  if (!request.cleanup.empty()) {
    state->program_ended_ns = os::utc_ns();
    if (const auto known = write_state(directory, *state); !known) (*output)->add_line(known.error().message);
    clean_up(request.cleanup);
  }
  if (state->signal == 0 && state->exit_status >= failed_status && state->exit_status <= no_program_status) {
    (*output)->finish();
    state->start_error = (*output)->last_error();
  }

  end_slice(request);
  // The program has ended. Beyond this point only the outcome is written.
  state->ended_ns = os::utc_ns();
  const auto written = write_last_state(directory, *state);
  if (request.has_liveness_file) close(first_cgroup_file + static_cast<int>(request.cgroup_files));
  (*output)->finish();
  if (!request.is_detached)  // `carve wait` reports it.
    (*output)->add_line(fmt::format("attempt {} ended: {}", request.attempt, exit_text(*state)));
  return written ? 0 : failed_status;
}

}  // namespace carve::runner
