#include "controller/runtime/proxy_process.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "controller/runtime/endpoint_config.h"
#include "os/directory.h"

namespace carve::controller {
namespace {

constexpr const char* record_file = "haproxy.process";
constexpr const char* log_file = "haproxy.log";  // Written by the running HAProxy.
constexpr int64_t poll_interval_ns = 10 * os::millisecond;
constexpr size_t max_report_bytes = 64 << 10;

// HAProxy gets its own environment, because the caller's could contain other settings (HAPROXY_*,
// NOTIFY_SOCKET).
char path_variable[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
char* const environment[] = {path_variable, nullptr};

struct Pipe {
  os::Fd reader, writer;
};
Outcome<Pipe> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return failure(FailureKind::unavailable, "cannot create a pipe: {}", strerror(errno));
  return Pipe{os::Fd(ends[0]), os::Fd(ends[1])};
}

bool is_running(const os::ProcessId& process) {
  const auto stat = os::stat_of(process.pid);
  return stat && stat->id == process && stat->state != 'Z';
}

// Returns HAProxy's first alert, which looks like "[ALERT] (12) : config : parsing [haproxy.cfg:3] : ...", or
// an empty string.
std::string first_alert(std::string_view text) {
  const size_t at = text.find("[ALERT]");
  if (at == std::string_view::npos) return "";
  std::string_view line = text.substr(at, text.find('\n', at) - at);
  const size_t begin = line.find(" : ");
  if (begin != std::string_view::npos) line.remove_prefix(begin + 3);
  return std::string(line.substr(0, 300));
}

// The data of the process that becomes HAProxy, prepared before fork() because the caller has threads.
struct Image {
  const char* program;
  char* const* words;
  const char* directory;
  const char* log;
  int go;      // HAProxy is executed when a byte arrives, not on end of file.
  int caller;  // The other end of `go`.
  int report;  // Receives the process id, and errno if execution fails.
};

// Becomes HAProxy as a child of init. Calls only async-signal-safe functions.
[[noreturn]] void become(const Image& image) {
  setsid();
  const pid_t child = fork();
  if (child != 0) _exit(child < 0 ? 1 : 0);
  close(image.caller);
  const int pid = getpid();
  char go = 0;
  if (write(image.report, &pid, sizeof pid) != sizeof pid || read(image.go, &go, 1) != 1) _exit(1);
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  for (int number = 1; number < 32; ++number) sigaction(number, &usual, nullptr);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int log = open(image.log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
  if (chdir(image.directory) == 0 && log >= 0 && dup2(null, 0) == 0 && dup2(log, 1) == 1 && dup2(log, 2) == 2)
    execve(image.program, image.words, environment);
  const int reason = errno;
  if (write(image.report, &reason, sizeof reason) != sizeof reason) _exit(1);
  _exit(1);
}

// Returns the rest of the data from the descriptor, up to its end or the deadline.
std::string read_report(const os::Fd& from, int64_t deadline_ns) {
  std::string text;
  std::array<char, 4096> bytes;
  for (;;) {
    pollfd waited{from.get(), POLLIN, 0};
    const int64_t left_ns = std::max<int64_t>(deadline_ns - os::monotonic_ns(), 0);
    if (poll(&waited, 1, static_cast<int>(left_ns / os::millisecond)) <= 0) return text;
    const ssize_t count = read(from.get(), bytes.data(), bytes.size());
    if (count <= 0) return text;
    if (text.size() < max_report_bytes) text.append(bytes.data(), static_cast<size_t>(count));
  }
}

}  // namespace

bool poll_until(int64_t most_ns, const std::function<bool()>& done) {
  const int64_t deadline_ns = os::monotonic_ns() + most_ns;
  while (!done()) {
    if (os::monotonic_ns() >= deadline_ns) return false;
    const timespec pause{.tv_sec = 0, .tv_nsec = poll_interval_ns};
    nanosleep(&pause, nullptr);
  }
  return true;
}

Outcome<std::string> find_program(const std::string& name) {
  const auto is_program = [](const std::string& path) { return access(path.c_str(), X_OK) == 0; };
  if (name.find('/') != std::string::npos) {
    if (is_program(name)) return name;
    return failure(FailureKind::not_found, "{} is not an executable program", name);
  }
  const char* variable = std::getenv("PATH");
  std::string folders = std::string(variable != nullptr ? variable : "") + ":/usr/sbin:/usr/bin:/sbin:/bin:";
  for (size_t at = 0; at < folders.size();) {
    const size_t end = folders.find(':', at);
    const std::string path = folders.substr(at, end - at) + "/" + name;
    if (path.front() == '/' && is_program(path)) return path;
    at = end + 1;
  }
  return failure(
      FailureKind::not_found,
      "{0} is not installed, but services with a port need it; install it with apt-get install {0}", name);
}

ProxyProcess::ProxyProcess(std::string directory, std::string program)
    : directory_(std::move(directory)), program_(std::move(program)), socket_(path(master_socket)) {}

std::optional<os::ProcessId> ProxyProcess::recorded() const {
  const std::string text = os::read_file(path(record_file)).value_or("");
  const std::string boot = os::boot_id() + " ";
  if (!text.starts_with(boot)) return std::nullopt;
  os::ProcessId process;
  const char* end = text.data() + text.size();
  const auto pid = std::from_chars(text.data() + boot.size(), end, process.pid);
  if (pid.ec != std::errc{} || pid.ptr == end || *pid.ptr != ' ') return std::nullopt;
  const auto start = std::from_chars(pid.ptr + 1, end, process.start);
  if (start.ec != std::errc{} || process.pid <= 0) return std::nullopt;
  return process;
}

Outcome<void> ProxyProcess::record(const os::ProcessId& process) const {
  return os::replace_file(path(record_file),
                          fmt::format("{} {} {}\n", os::boot_id(), process.pid, process.start));
}

Outcome<std::optional<ProxyProcesses>> ProxyProcess::find() const {
  std::optional<ProxyProcesses> found;
  std::string trouble = "it does not respond";
  const auto known = recorded();
  const auto is_settled = [&] {
    const auto listener = socket_.listener();
    if (!listener) return !known || !is_running(*known);
    const auto answer = socket_.ask("show proc");
    if (!answer || answer->empty()) return false;  // A reload is in progress.
    const auto processes = read_processes(*answer);
    if (!processes) trouble = processes.error().message;
    if (!processes || processes->master != listener->pid) return false;
    found = *processes;
    return true;
  };
  if (poll_until(max_silence_ns, is_settled)) return found;
  return failure(FailureKind::unavailable,
                 "HAProxy, process {}, runs but cannot be used at {}: {}; if this persists, end the process; "
                 "the controller then starts another",
                 known ? known->pid : 0, socket_.path(), trouble);
}

Outcome<void> ProxyProcess::check_config(const std::string& file) const {
  const auto program = find_program(program_);
  if (!program) return tl::unexpected(program.error());
  auto pipe = make_pipe();
  if (!pipe) return tl::unexpected(pipe.error());
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addchdir_np(&files, directory_.c_str());
  posix_spawn_file_actions_adddup2(&files, pipe->writer.get(), 1);
  posix_spawn_file_actions_adddup2(&files, pipe->writer.get(), 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::string name = *program, check = "-c", option = "-f", config = file;
  char* const words[] = {name.data(), check.data(), option.data(), config.data(), nullptr};
  pid_t pid = 0;
  const int error = posix_spawn(&pid, name.c_str(), &files, &attributes, words, environment);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0)
    return failure(FailureKind::unavailable, "cannot execute {}: {}", *program, strerror(error));
  pipe->writer.reset();
  const std::string report = read_report(pipe->reader, os::monotonic_ns() + max_start_ns);
  int status = 0;
  // Waits until the process has ended or the time limit has passed.
  if (!poll_until(max_silence_ns, [&] { return waitpid(pid, &status, WNOHANG) != 0; })) {
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return failure(FailureKind::invalid_argument, "HAProxy refuses {}: {}", path(file.c_str()),
                 first_alert(report));
}

Outcome<os::ProcessId> ProxyProcess::launch(const std::string& program) const {
  auto go = make_pipe(), report = make_pipe();
  if (!go || !report) return tl::unexpected(go ? report.error() : go.error());
  const std::string log = path(log_file);
  std::string text[] = {program,     "-W", "-f",
                        config_file, "-S", fmt::format("unix@{},mode,600", master_socket)};
  std::array<char*, std::size(text) + 1> words{};
  for (size_t i = 0; i < std::size(text); ++i) words[i] = text[i].data();
  const Image image{program.c_str(),  words.data(),     directory_.c_str(),  log.c_str(),
                    go->reader.get(), go->writer.get(), report->writer.get()};
  const pid_t child = fork();
  if (child < 0) return failure(FailureKind::unavailable, "cannot start HAProxy: {}", strerror(errno));
  if (child == 0) become(image);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
  report->writer.reset();
  go->reader.reset();
  int pid = 0;
  if (read(report->reader.get(), &pid, sizeof pid) != sizeof pid)
    return not_started("its process could not be created");
  const auto stat = os::stat_of(pid);
  if (!stat) return not_started("its process has ended");
  if (const auto written = record(stat->id); !written) return tl::unexpected(written.error());
  if (write(go->writer.get(), "g", 1) != 1) return not_started("its process has ended");
  int reason = 0;  // End of file means that HAProxy was executed.
  if (read(report->reader.get(), &reason, sizeof reason) == sizeof reason)
    return not_started(strerror(reason));
  return stat->id;
}

tl::unexpected<Failure> ProxyProcess::not_started(const char* what) const {
  const std::string alert = first_alert(os::read_file(path(log_file)).value_or(""));
  return failure(FailureKind::unavailable, "HAProxy did not start: {}; its log is {}",
                 alert.empty() ? what : alert, path(log_file));
}

Outcome<void> ProxyProcess::start() const {
  const auto program = find_program(program_);
  if (!program) return tl::unexpected(program.error());
  const auto process = launch(*program);
  if (!process) return tl::unexpected(process.error());
  bool serves = false;
  const bool in_time = poll_until(max_start_ns, [&] {
    const auto answer = socket_.ask("show proc");
    const auto processes = answer ? read_processes(*answer) : tl::unexpected(answer.error());
    serves = processes && processes->master == process->pid && processes->worker != 0;
    return serves || !is_running(*process);
  });
  if (serves) return {};
  if (in_time) return not_started("it has ended");
  kill(process->pid, SIGKILL);  // Still the process that was started above.
  return not_started("it did not respond within 5 s");
}

// HAProxy opens its log for appending, so the file can be truncated while it is open.
void ProxyProcess::limit_log() const {
  const std::string log = path(log_file);
  struct stat file {};
  if (stat(log.c_str(), &file) != 0 || file.st_size <= max_proxy_log_bytes) return;
  if (truncate(log.c_str(), 0) != 0) return;  // A failure must not prevent the reload.
}

Outcome<void> ProxyProcess::reload() const {
  limit_log();
  const auto before = find();
  if (!before) return tl::unexpected(before.error());
  if (!*before) return failure(FailureKind::unavailable, "HAProxy has ended");
  // The master re-executes itself, so its answer is usually lost.
  if (const auto answer = socket_.ask("reload"); !answer && answer.error().kind == FailureKind::not_found)
    return tl::unexpected(answer.error());
  ProxyProcesses after;
  const bool in_time = poll_until(max_start_ns, [&] {
    const auto answer = socket_.ask("show proc");
    const auto processes = answer ? read_processes(*answer) : tl::unexpected(answer.error());
    if (processes) after = *processes;
    return processes && after.reloads > (*before)->reloads;
  });
  if (in_time && after.failed_reloads == 0 && after.worker != 0 && after.worker != (*before)->worker)
    return {};
  return failure(FailureKind::unavailable,
                 "HAProxy did not load {} and keeps its previous configuration; its log is {}",
                 path(config_file), path(log_file));
}

Outcome<void> ProxyProcess::stop() const {
  const auto running = find();
  if (!running) return tl::unexpected(running.error());
  const auto process = socket_.listener();
  if (!*running || !process) return {};
  const os::Fd held = os::open_process(*process);
  if (!held) return {};
  os::send_signal(held, SIGTERM);
  if (poll_until(max_start_ns, [&] { return !os::alive(held); })) return {};
  return failure(FailureKind::unavailable, "HAProxy, process {}, has not ended 5 s after SIGTERM",
                 process->pid);
}

}  // namespace carve::controller
