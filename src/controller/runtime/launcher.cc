#include "controller/runtime/launcher.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "controller/runtime/program_directory.h"
#include "os/capabilities.h"
#include "os/clock.h"
#include "os/directory.h"
#include "os/process.h"
#include "os/user.h"
#include "runner/liveness_file.h"
#include "runner/runner.h"
#include "wire/api/json.h"

namespace carve::controller {
namespace {

constexpr size_t max_message_bytes = 256 << 10;  // Environment and command, as JSON.

// A message to the launcher, in which exactly one of the three is set.
struct Message {
  std::optional<LaunchRequest> start;
  std::optional<SignalRequest> signal;
  std::optional<RemoveRequest> remove;
};
struct Reply {
  std::string problem;  // Empty if the request succeeded.
};

struct User {
  uid_t uid;
  std::string name, home;
  gid_t group;
};
Outcome<User> user_of(uid_t uid) {
  const passwd* entry = getpwuid(uid);
  if (entry == nullptr)
    return failure(FailureKind::failed_precondition, "this machine has no user with the uid {}", uid);
  return User{uid, entry->pw_name, entry->pw_dir, entry->pw_gid};
}

constexpr auto kept_capabilities = {CAP_SETUID, CAP_SETGID, CAP_CHOWN};
bool can_change_user() { return std::ranges::all_of(kept_capabilities, os::has_capability); }

// Returns why a launcher that runs as this process's user cannot start programs of the given user; empty if
// it can.
std::string start_problem_of(uid_t uid, bool changes_user) {
  if (uid == geteuid()) return "";
  if (uid == 0)
    return fmt::format(
        "starting a program as root requires a controller that runs as root, but this one runs as {}; apply "
        "the document as another user, or run the controller as root",
        os::user_name(geteuid()));
  if (changes_user) return "";
  return fmt::format(
      "this controller runs as {} and starts only programs of this user, not of {}; to start programs of "
      "every user, run it as root, or give it CAP_SETUID, CAP_SETGID and CAP_CHOWN",
      os::user_name(geteuid()), os::user_name(uid));
}

// Becomes the user, with the user's groups, irreversibly.
bool become(const User& user) {
  if (user.uid != geteuid() &&
      (initgroups(user.name.c_str(), user.group) != 0 || setgid(user.group) != 0 || setuid(user.uid) != 0))
    return false;
  return os::keep_capabilities({}).has_value();
}

// Moves the files to the descriptors from first_cgroup_file on and closes all other descriptors above
// standard error.
bool keep_files(const std::vector<os::Fd>& files) {
  std::vector<int> high;  // Copies above the target range.
  for (const os::Fd& file : files)
    high.push_back(
        fcntl(file.get(), F_DUPFD_CLOEXEC, runner::first_cgroup_file + static_cast<int>(files.size())));
  int next = runner::first_cgroup_file;
  for (const int file : high)
    if (dup2(file, next++) < 0) return false;
  return close_range(static_cast<unsigned>(next), ~0u, 0) == 0;
}

// Executes the supervisor in the program's directory. The supervisor reads the request from `input`.
[[noreturn]] void execute(const std::string& program, const User& user, int directory, int input,
                          std::vector<os::Fd>& files, const std::string& liveness_file) {
  setsid();
  std::optional<os::ProcessId> former;
  files.push_back(runner::hold_liveness_file(liveness_file, former));
  if (!files.back()) _exit(runner::supervised_status);
  signal(SIGPIPE, SIG_DFL);
  signal(SIGINT, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  umask(027);
  const int null = open("/dev/null", O_RDWR);
  // Enters the directory first, because the user may have no access to the folders above it.
  if (fchdir(directory) != 0 || !become(user) || dup2(input, STDIN_FILENO) < 0 ||
      dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0 || !keep_files(files))
    _exit(runner::failed_status);
  // A session that a killed supervisor left must not run at the same time as the next program.
  if (former) runner::signal_session(*former, SIGKILL);
  char* const words[] = {const_cast<char*>("carve-supervise"), nullptr};
  char* const environment[] = {nullptr};
  execve(program.c_str(), words, environment);
  _exit(runner::no_program_status);
}

// Creates the folder of the liveness files, to which other users have no access.
Outcome<void> make_liveness_folder(const std::string& programs) {
  const std::string file = liveness_file_of(programs, "");
  return os::make_directory(file.substr(0, file.rfind('/')), 0700);
}

// The launcher's startup parameters.
struct Places {
  std::string program;  // Path of carve-supervise.
  std::string folder;   // For the programs' directories.
};

Outcome<void> start_supervisor(const Places& places, runner::ReplicaCgroups& cgroups, LaunchRequest request) {
  if (const std::string problem = start_problem_of(request.uid, can_change_user()); !problem.empty())
    return failure(FailureKind::permission_denied, "{}", problem);
  const auto user = user_of(request.uid);
  if (!user) return tl::unexpected(user.error());
  const auto directory = make_program_directory(places.folder, request.name, request.uid);
  if (!directory) return tl::unexpected(directory.error());
  runner::SuperviseRequest& supervise = request.supervise;
  if (const auto made = make_liveness_folder(places.folder); !made) return made;
  auto joined = cgroups.make(request.name, request.limits, !supervise.slice.empty());
  if (!joined) return tl::unexpected(joined.error());
  supervise.cgroup_files = static_cast<uint32_t>(joined->process_files.size());
  supervise.has_liveness_file = true;
  supervise.memory_events = joined->memory_events;
  supervise.memory_limit_bytes = request.limits.memory_bytes;
  supervise.directory = ".";
  supervise.env.try_emplace("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
  supervise.env.try_emplace("HOME", user->home);
  supervise.env.try_emplace("USER", user->name);
  supervise.env.try_emplace("LANG", "C.UTF-8");
  const std::string text = api::write(supervise);
  // A file in memory rather than a pipe, because the text may exceed a pipe's capacity.
  const os::Fd input(memfd_create("carve-supervise", MFD_CLOEXEC));
  if (!input || ::write(input.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      lseek(input.get(), 0, SEEK_SET) != 0)
    return failure(FailureKind::unavailable, "cannot allocate memory for the request: {}", strerror(errno));
  return detach([&] {
    execute(places.program, *user, directory->get(), input.get(), joined->process_files,
            liveness_file_of(places.folder, request.name));
  });
}

// Sends the signal with the rights of the program's user, because that user can write any process into the
// state. `living` is the supervisor if its liveness file identifies it; the state's process must then be a
// child of it.
void signal_program(int directory, int signal, const std::optional<os::ProcessId>& living) {
  if (fchdir(directory) != 0) return;
  const auto seen = runner::read_program(".");
  const runner::SupervisorState state = seen ? seen->state : runner::SupervisorState{};
  if (living) {
    // Nothing was executed yet, so nothing is lost: the kernel kills a program's process with its supervisor.
    const bool has_begun = state.ended_ns == 0 && state.supervisor_pid == living->pid;
    if (has_begun && state.program_pid == 0 && (signal == SIGTERM || signal == SIGKILL)) {
      os::send_signal(os::open_process(*living), SIGKILL);
      return;
    }
    const auto named = os::stat_of(state.program_pid);
    if (state.ended_ns != 0 || !named || named->parent != living->pid) {
      const bool found = runner::signal_session(*living, signal);
      const bool kills = !found && signal == SIGKILL && !runner::is_cleaning_up(state, os::utc_ns());
      if (kills) os::send_signal(os::open_process(*living), signal);
      return;
    }
  } else if (!seen || seen->phase() != runner::ProgramPhase::running) {
    return;
  }
  const os::Fd program = os::open_process({.pid = state.program_pid, .start = state.program_start});
  if (state.program_pid > 0 && program) {
    if (kill(-state.program_pid, signal) != 0) os::send_signal(program, signal);
    return;
  }
  // A supervisor that still runs will write the end.
  const os::ProcessId own =
      living.value_or(os::ProcessId{.pid = state.supervisor_pid, .start = state.supervisor_start});
  const auto supervisor = os::stat_of(own.pid);
  const bool hangs =
      state.program_pid == 0 || (supervisor && (supervisor->state == 'T' || supervisor->state == 't'));
  if (signal != SIGKILL || !hangs) return;
  if (const os::Fd held = os::open_process(own)) os::send_signal(held, signal);
}

Outcome<void> send_signal_to(const std::string& folder, const SignalRequest& request) {
  const auto directory = open_program_directory(folder, request.name);
  if (!directory) return tl::unexpected(directory.error());
  if (!directory->fd) return {};
  auto living = runner::living_supervisor(liveness_file_of(folder, request.name));
  if (living && !*living) living.reset();  // It has not identified itself yet.
  return detach([&] {
    if (become_user(directory->uid)) signal_program(directory->fd.get(), request.signal, living);
  });
}

Outcome<void> carry_out(const Places& places, runner::ReplicaCgroups& cgroups, const std::string& text) {
  auto message = api::read<Message>(text, api::Reading::strict);
  if (!message) return failure(FailureKind::invalid_argument, "{}", message.error());
  for (const std::string* name :
       {message->start ? &message->start->name : nullptr, message->signal ? &message->signal->name : nullptr,
        message->remove ? &message->remove->name : nullptr})
    if (name != nullptr && !is_program_name(*name))
      return failure(FailureKind::invalid_argument, "'{}' is not the name of a program's directory",
                     name->substr(0, 80));
  if (message->start) return start_supervisor(places, cgroups, std::move(*message->start));
  if (message->signal) return send_signal_to(places.folder, *message->signal);
  if (message->remove) {
    cgroups.remove(message->remove->name);
    unlink(liveness_file_of(places.folder, message->remove->name).c_str());
    return remove_program_directory(places.folder, message->remove->name);
  }
  return failure(FailureKind::invalid_argument, "the message has no request");
}

[[noreturn]] void serve(const Places& places, int socket) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, "carve-launcher");
  signal(SIGINT, SIG_IGN);  // Ctrl-C must end the controller first.
  runner::ReplicaCgroups cgroups(runner::read_own_cgroups(), places.folder);
  if (!os::keep_capabilities(kept_capabilities)) _exit(1);
  const std::string problems = api::write(cgroups.problems());
  if (send(socket, problems.data(), problems.size(), MSG_NOSIGNAL) < 0) _exit(0);
  std::vector<char> buffer(max_message_bytes);
  for (;;) {
    const ssize_t got = recv(socket, buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) _exit(0);
    const auto done = carry_out(places, cgroups, std::string(buffer.data(), static_cast<size_t>(got)));
    const std::string answer = api::write(Reply{done ? "" : done.error().message});
    if (send(socket, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) _exit(0);
  }
}

// Returns the launcher's next message.
Outcome<std::string> received(int socket) {
  char answer[4096];
  ssize_t got = 0;
  while ((got = recv(socket, answer, sizeof answer, 0)) < 0 && errno == EINTR) {}
  if (got <= 0) return failure(FailureKind::unavailable, "the launcher has ended");
  return std::string(answer, static_cast<size_t>(got));
}

}  // namespace

std::string liveness_file_of(const std::string& programs, const std::string& name) {
  return programs.substr(0, programs.rfind('/')) + "/supervisors/" + name;
}

Outcome<Launcher> Launcher::begin(const std::string& program, const std::string& folder) {
  if (access(program.c_str(), X_OK) != 0)
    return failure(FailureKind::unavailable, "{}: {}; install this program next to carve-controller", program,
                   strerror(errno));
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return failure(FailureKind::unavailable, "cannot create a socket pair: {}", strerror(errno));
  os::Fd ours(ends[0]), theirs(ends[1]);
  const int size = 2 * max_message_bytes;
  setsockopt(ours.get(), SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  const pid_t child = fork();
  if (child < 0) return failure(FailureKind::unavailable, "cannot start a process: {}", strerror(errno));
  if (child == 0) {
    ours.reset();
    serve({.program = program, .folder = folder}, theirs.get());
  }
  theirs.reset();  // So that the launcher's end is an end of file.
  const auto text = received(ours.get());
  if (!text) return tl::unexpected(text.error());
  auto problems = api::read<runner::LimitProblems>(*text, api::Reading::lenient);
  if (!problems) return failure(FailureKind::unavailable, "the launcher: {}", problems.error());
  return Launcher(std::move(ours), can_change_user(), std::move(*problems));
}

std::string Launcher::start_problem(uint32_t uid) const { return start_problem_of(uid, changes_user_); }

Outcome<void> Launcher::ask(const std::string& message) const {
  if (message.size() > max_message_bytes)
    return failure(FailureKind::invalid_argument, "command and environment have {} bytes; use at most {}",
                   message.size(), max_message_bytes);
  if (send(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL) < 0)
    return failure(FailureKind::unavailable, "the launcher has ended: {}", strerror(errno));
  const auto answer = received(socket_.get());
  if (!answer) return tl::unexpected(answer.error());
  const auto reply = api::read<Reply>(*answer, api::Reading::lenient);
  if (!reply) return failure(FailureKind::unavailable, "the launcher: {}", reply.error());
  if (!reply->problem.empty()) return failure(FailureKind::failed_precondition, "{}", reply->problem);
  return {};
}

Outcome<void> Launcher::start(const LaunchRequest& request) const {
  return ask(api::write(Message{.start = request, .signal = {}, .remove = {}}));
}

Outcome<void> Launcher::send_signal(const SignalRequest& request) const {
  return ask(api::write(Message{.start = {}, .signal = request, .remove = {}}));
}

Outcome<void> Launcher::remove(const RemoveRequest& request) const {
  return ask(api::write(Message{.start = {}, .signal = {}, .remove = request}));
}

}  // namespace carve::controller
