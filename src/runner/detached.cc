#include "runner/detached.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "os/beneath.h"
#include "os/directory.h"
#include "os/fd.h"
#include "runner/runner.h"
#include "wire/api/json.h"

namespace carve::runner {

// The file `program.json` of a detached program.
struct DetachedRecord {
  uint64_t slice_created_ns = 0;
};

namespace {

constexpr const char* record_file_name = "program.json";
constexpr int end_patience_ms = 2000;  // For the supervisor of an earlier program with the same name.

std::string home_directory() {
  if (const char* const home = std::getenv("HOME"); home != nullptr && *home != '\0') return home;
  const passwd* const user = getpwuid(geteuid());
  return user != nullptr ? user->pw_dir : "/";
}

std::string absolute(const std::string& path) {
  std::error_code error;
  const auto whole = std::filesystem::absolute(path, error);
  return error ? path : whole.lexically_normal().string();
}

bool is_file_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

// Removes the oldest of the programs that have ended.
void remove_old(const std::string& folder) {
  std::error_code error;
  std::vector<std::pair<int64_t, std::filesystem::path>> ended;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const auto seen = read_program(entry.path());
    if (!seen || seen->phase() == ProgramPhase::running || seen->phase() == ProgramPhase::never_started)
      continue;
    ended.emplace_back(std::max(seen->state.started_ns, seen->state.ended_ns), entry.path());
  }
  if (ended.size() <= max_ended_programs) return;
  std::ranges::sort(ended);
  ended.resize(ended.size() - max_ended_programs);
  for (const auto& [at_ns, path] : ended) std::filesystem::remove_all(path, error);
}

// Creates an empty directory for the program. A program of an earlier slice with the same name is removed
// with its output.
Outcome<std::string> make_program_directory(const std::string& folder, const std::string& name,
                                            uint64_t slice_created_ns) {
  const std::string directory = folder + "/" + name;
  // The parents of a folder are readable for other users, so the first one of Carve is private.
  const std::string top = folder.substr(0, folder.rfind("/programs/"));
  for (const std::string& path : {top, folder})
    if (const auto made = os::make_directory(path, 0700); !made) return tl::unexpected(made.error());
  for (int waited_ms = 0;; waited_ms += 20) {
    const auto before = read_program(directory);
    if (!before || !before->is_supervised) break;
    if (waited_ms >= end_patience_ms)
      return failure(FailureKind::failed_precondition,
                     "the previous program of slice {} is still ending; try again or use another --name",
                     name);
    usleep(20'000);
  }
  std::error_code error;
  std::filesystem::remove_all(directory, error);
  if (error) return failure(FailureKind::unavailable, "cannot remove {}: {}", directory, error.message());
  if (const auto made = os::make_directory(directory, 0700); !made) return tl::unexpected(made.error());
  const std::string record = api::write(DetachedRecord{slice_created_ns});
  const auto written = os::replace_file(directory + "/" + record_file_name, record);
  if (!written) return tl::unexpected(written.error());
  return directory;
}

[[noreturn]] void become_supervisor(const std::string& supervisor, int input, int socket) {
  setsid();
  dup2(input, STDIN_FILENO);
  dup2(socket, STDOUT_FILENO);
  dup2(socket, STDERR_FILENO);
  close_range(STDERR_FILENO + 1, ~0U, 0);
  char name[] = "carve-supervise";
  char* const words[] = {name, nullptr};
  execv(supervisor.c_str(), words);
  const std::string problem = supervisor + ": " + strerror(errno);
  if (write(STDERR_FILENO, problem.data(), problem.size()) < 0) _exit(failed_status);
  _exit(failed_status);
}

// Returns what the supervisor wrote until it reported the start or ended.
std::string report_of(int socket) {
  std::string out;
  char bytes[1024];
  while (out != start_report) {
    const ssize_t got = read(socket, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    out.append(bytes, static_cast<size_t>(got));
  }
  return out;
}

// Returns why the supervisor did not start the program. `report` is what it wrote.
StartFailure failure_of(const std::string& directory, std::string report) {
  while (report.ends_with('\n')) report.pop_back();
  if (!report.empty()) return {failed_status, report};
  const auto seen = read_program(directory);
  if (!seen) return {failed_status, seen.error().message};
  if (seen->phase() != ProgramPhase::ended)
    return {failed_status, "the program's supervisor was killed before it started the program"};
  const SupervisorState& state = seen->state;
  return {static_cast<int>(state.exit_status),
          state.start_error.empty() ? exit_text(state) : state.start_error};
}

}  // namespace

std::string detached_folder(const std::string& state, const std::string& home, const std::string& socket) {
  std::string name;
  for (const char c : absolute(socket)) {
    if (c == '/')
      name += "%2F";
    else if (c == '%')
      name += "%25";
    else
      name += c;
  }
  return (state.starts_with('/') ? state : home + "/.local/state") + "/carve/programs/" + name;
}

std::string detached_folder(const std::string& socket) {
  const char* const state = std::getenv("XDG_STATE_HOME");
  return detached_folder(state != nullptr ? state : "", home_directory(), socket);
}

Outcome<std::optional<DetachedProgram>> find_detached(const std::string& folder, const std::string& name) {
  if (!is_file_name(name)) return std::nullopt;
  const std::string directory = folder + "/" + name;
  const os::Fd opened(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!opened && (errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG)) return std::nullopt;
  if (!opened) return failure(FailureKind::unavailable, "{} cannot be read: {}", directory, strerror(errno));
  auto seen = read_program(directory);
  if (!seen) return tl::unexpected(seen.error());
  DetachedProgram out{.directory = directory, .seen = std::move(*seen)};
  if (const auto text = os::read_beneath(opened.get(), record_file_name, max_state_bytes))
    if (const auto record = api::read<DetachedRecord>(*text, api::Reading::lenient))
      out.slice_created_ns = record->slice_created_ns;
  return out;
}

Result<void, StartFailure> start_detached(const std::string& folder, const std::string& name,
                                          const std::string& supervisor, SuperviseRequest request) {
  const auto fail = [](const char* what) {
    return tl::unexpected(StartFailure{failed_status, fmt::format("{}: {}", what, strerror(errno))});
  };
  const auto directory = make_program_directory(folder, name, request.slice_created_ns);
  if (!directory) return tl::unexpected(StartFailure{failed_status, directory.error().message});
  remove_old(folder);
  request.directory = *directory;
  const std::string text = api::write(request);
  const os::Fd input(memfd_create("carve-supervise", MFD_CLOEXEC));
  if (!input || write(input.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      lseek(input.get(), 0, SEEK_SET) != 0)
    return fail("cannot write the supervisor's request");
  int ends[2];
  // A socket, because the supervisor writes to it without SIGPIPE if this process was killed.
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return fail("cannot create a socket");
  const os::Fd own(ends[0]);
  os::Fd its(ends[1]);
  const pid_t child = fork();
  if (child < 0) return fail("cannot start a process");
  if (child == 0) become_supervisor(supervisor, input.get(), its.get());
  its.reset();
  std::string report = report_of(own.get());
  if (report == start_report) return {};
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {}
  StartFailure problem = failure_of(*directory, std::move(report));
  std::error_code error;
  std::filesystem::remove_all(*directory, error);
  return tl::unexpected(std::move(problem));
}

}  // namespace carve::runner
