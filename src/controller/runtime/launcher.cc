#include "controller/runtime/launcher.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "os/directory.h"
#include "os/process.h"
#include "wire/api/json.h"

namespace carve::controller {
namespace {

using K = FailureKind;

constexpr size_t max_message_bytes = 256 << 10;  // Environment and command, as JSON.

// One message to the launcher: exactly one of the two.
struct Message {
  std::optional<LaunchRequest> start;
  std::optional<SignalRequest> signal;
};
struct Reply {
  std::string problem;  // Empty: done.
};

struct User {
  std::string name, home;
  gid_t group;
};
Outcome<User> user_of(uid_t uid) {
  const passwd* entry = getpwuid(uid);
  if (entry == nullptr)
    return failure(K::failed_precondition, "this machine has no user with the uid {}", uid);
  return User{entry->pw_name, entry->pw_dir, entry->pw_gid};
}

Outcome<void> make_program_directory(const std::string& path, uid_t uid, gid_t group) {
  if (auto made = os::make_directory(path, 0750); !made) return made;
  if (geteuid() == 0 && chown(path.c_str(), uid, group) != 0)
    return failure(K::unavailable, "{}: its owner cannot be changed: {}", path, strerror(errno));
  return {};
}

// Becomes the user. There is no way back.
bool become(const User& user, uid_t uid) {
  if (geteuid() != 0) return geteuid() == uid;
  return initgroups(user.name.c_str(), user.group) == 0 && setgid(user.group) == 0 && setuid(uid) == 0;
}

// The grandchild's part: executes the supervisor, which reads the request from `input`.
[[noreturn]] void execute(const std::string& program, const User& user, uid_t uid, int input) {
  setsid();
  signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  umask(027);
  const int null = open("/dev/null", O_RDWR);
  if (!become(user, uid) || dup2(input, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
      dup2(null, STDERR_FILENO) < 0)
    _exit(runner::supervised_status);
  close_range(STDERR_FILENO + 1, ~0u, 0);
  char* const words[] = {const_cast<char*>("carve-supervise"), nullptr};
  char* const environment[] = {nullptr};
  execve(program.c_str(), words, environment);
  _exit(127);
}

Outcome<void> start_supervisor(const std::string& program, LaunchRequest request) {
  if (request.uid == 0 && geteuid() != 0)
    return failure(K::permission_denied, "a program of root is started by a controller of root only");
  if (request.uid != geteuid() && geteuid() != 0)
    return failure(K::permission_denied,
                   "this controller runs as uid {} and starts programs of this user only", geteuid());
  const auto user = user_of(request.uid);
  if (!user) return tl::unexpected(user.error());
  runner::SuperviseRequest& supervise = request.supervise;
  if (auto made = make_program_directory(supervise.directory, request.uid, user->group); !made) return made;
  if (supervise.workdir.empty()) supervise.workdir = user->home;
  supervise.env.try_emplace("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
  supervise.env.try_emplace("HOME", user->home);
  supervise.env.try_emplace("USER", user->name);
  supervise.env.try_emplace("LANG", "C.UTF-8");
  const std::string text = api::write(supervise);
  // A file in memory, not a pipe: the text may be longer than a pipe holds.
  const os::Fd input(memfd_create("carve-supervise", MFD_CLOEXEC));
  if (!input || ::write(input.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      lseek(input.get(), 0, SEEK_SET) != 0)
    return failure(K::unavailable, "no memory for the request: {}", strerror(errno));
  const pid_t middle = fork();
  if (middle < 0) return failure(K::unavailable, "cannot start a process: {}", strerror(errno));
  if (middle == 0) {
    const pid_t supervisor = fork();
    if (supervisor == 0) execute(program, *user, request.uid, input.get());
    _exit(supervisor < 0 ? 1 : 0);
  }
  int status = 0;
  while (waitpid(middle, &status, 0) < 0 && errno == EINTR) {}
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return failure(K::unavailable, "cannot start a process for {}", supervise.directory);
  return {};
}

Outcome<void> signal_program(const SignalRequest& request) {
  const os::Fd process = os::open_process({.pid = request.pid, .start = request.start});
  if (!process) return {};  // It has ended.
  if (kill(-request.pid, request.signal) != 0 && errno == ESRCH) os::send_signal(process, request.signal);
  return {};
}

Reply carry_out(const std::string& program, const std::string& text) {
  auto message = api::read<Message>(text, api::Reading::strict);
  if (!message) return {message.error()};
  Outcome<void> done;
  if (message->start)
    done = start_supervisor(program, std::move(*message->start));
  else if (message->signal)
    done = signal_program(*message->signal);
  return {done ? "" : done.error().sentence};
}

[[noreturn]] void serve(const std::string& program, int socket) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, "carve-launcher");
  signal(SIGINT, SIG_IGN);  // Of the terminal: the controller ends first.
  std::vector<char> buffer(max_message_bytes);
  for (;;) {
    const ssize_t got = recv(socket, buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) _exit(0);
    const std::string answer =
        api::write(carry_out(program, std::string(buffer.data(), static_cast<size_t>(got))));
    if (send(socket, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) _exit(0);
  }
}

}  // namespace

Outcome<Launcher> Launcher::begin(const std::string& program) {
  if (access(program.c_str(), X_OK) != 0)
    return failure(K::unavailable, "{}: {}; it is installed beside carve-controller", program,
                   strerror(errno));
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return failure(K::unavailable, "no socket pair: {}", strerror(errno));
  os::Fd ours(ends[0]), theirs(ends[1]);
  const int size = 2 * max_message_bytes;
  setsockopt(ours.get(), SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  const pid_t child = fork();
  if (child < 0) return failure(K::unavailable, "cannot start a process: {}", strerror(errno));
  if (child == 0) {
    ours.reset();
    serve(program, theirs.get());
  }
  return Launcher(std::move(ours));
}

Outcome<void> Launcher::ask(const std::string& message) const {
  char answer[4096];
  if (message.size() > max_message_bytes)
    return failure(K::invalid_argument, "command and environment have {} bytes; at most {} are passed on",
                   message.size(), max_message_bytes);
  if (send(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL) < 0)
    return failure(K::unavailable, "the launcher has ended: {}", strerror(errno));
  ssize_t got = 0;
  while ((got = recv(socket_.get(), answer, sizeof answer, 0)) < 0 && errno == EINTR) {}
  if (got <= 0) return failure(K::unavailable, "the launcher has ended");
  const auto reply =
      api::read<Reply>(std::string_view(answer, static_cast<size_t>(got)), api::Reading::lenient);
  if (!reply) return failure(K::unavailable, "the launcher: {}", reply.error());
  if (!reply->problem.empty()) return failure(K::failed_precondition, "{}", reply->problem);
  return {};
}

Outcome<void> Launcher::start(const LaunchRequest& request) const {
  return ask(api::write(Message{.start = request, .signal = {}}));
}

Outcome<void> Launcher::send_signal(const SignalRequest& request) const {
  return ask(api::write(Message{.start = {}, .signal = request}));
}

}  // namespace carve::controller
