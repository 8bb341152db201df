#include "node/pages/fd_store.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include "core/request.h"
#include "os/socket.h"

namespace carve::node {
namespace {

// One datagram in each direction. 'h' (hold) carries a descriptor, and the response to 'g' (get) may carry
// one.
struct Message {
  char verb;  // Request 'h', 'g' or 'd'; response 'y' or 'n'.
  char name[71];
};
static_assert(sizeof(Message) == 72);

constexpr size_t max_descriptors = 1024;
constexpr size_t max_agents = 4;  // One agent, and others that are ending.

std::string socket_in(const std::string& dir) { return dir + "/fdstore.sock"; }

// Returns whether the socket's file is still the one that was created, so that an agent can connect.
bool is_there(const std::string& path, const struct stat& made) {
  struct stat now {};
  return lstat(path.c_str(), &now) == 0 && now.st_dev == made.st_dev && now.st_ino == made.st_ino;
}

struct HeldDescriptor {
  std::string name;
  os::Fd fd;
};

void answer(int agent, std::vector<HeldDescriptor>& held) {
  Message message{};
  os::Fd given;
  if (os::receive_with(agent, &message, sizeof message, &given, 1) != sizeof message) return;
  message.name[sizeof message.name - 1] = '\0';
  const auto found = std::ranges::find(held, std::string_view(message.name), &HeldDescriptor::name);
  Message reply{'n', {}};
  int out = -1;
  if (message.verb == 'h' && given && (found != held.end() || held.size() < max_descriptors)) {
    if (found != held.end())
      found->fd = std::move(given);
    else
      held.push_back({message.name, std::move(given)});
    reply.verb = 'y';
  } else if (message.verb == 'g' && found != held.end()) {
    out = found->fd.get();
    reply.verb = 'y';
  } else if (message.verb == 'd') {
    if (found != held.end()) held.erase(found);
    reply.verb = 'y';
  }
  os::send_with(agent, &reply, sizeof reply, &out, out >= 0 ? 1 : 0);
}

}  // namespace

int run_fd_store(const std::string& runtime_dir) {
  setsid();
  signal(SIGHUP, SIG_IGN);
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_IGN);  // A service manager that stops the agent also sends SIGTERM here; slices keep
                             // running, so the fd store must stay.
  prctl(PR_SET_NAME, "carve-fdstore");
  auto listener = os::listen_at(socket_in(runtime_dir), SOCK_SEQPACKET, 0600);
  if (!listener) return 1;
  struct stat made {};
  lstat(socket_in(runtime_dir).c_str(), &made);
  // The agent waits until this process closes its standard output, and then connects.
  const os::Fd nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const int standard : {0, 1, 2}) dup2(nothing.get(), standard);
  close_range(static_cast<unsigned>(std::max(nothing.get(), listener->get())) + 1, ~0u, 0);

  std::vector<HeldDescriptor> held;
  std::vector<os::Fd> agents;
  bool met = false;
  int seconds_alone = 0;
  while (!met || !held.empty() || !agents.empty()) {
    std::vector<pollfd> waits{{listener->get(), POLLIN, 0}};
    for (const os::Fd& agent : agents) waits.push_back({agent.get(), POLLIN, 0});
    const int ready = poll(waits.data(), waits.size(), agents.empty() ? 1000 : -1);
    if (ready == 0 && !met && ++seconds_alone >= 30) return 0;  // No agent has connected within 30 s.
    if (ready == 0 && !is_there(socket_in(runtime_dir), made)) return 0;  // No agent can connect now.
    if (ready < 0) continue;
    for (size_t i = waits.size() - 1; i >= 1; --i) {
      if (waits[i].revents == 0) continue;
      char unused;
      if (recv(waits[i].fd, &unused, 1, MSG_PEEK | MSG_DONTWAIT) <= 0 && errno != EAGAIN)
        agents.erase(agents.begin() + static_cast<ptrdiff_t>(i) - 1);
      else
        answer(waits[i].fd, held);
    }
    if ((waits[0].revents & POLLIN) == 0) continue;
    os::Fd agent(accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
    const auto peer = agent ? os::peer_of(agent.get()) : std::nullopt;
    if (!peer || peer->uid != geteuid() || agents.size() >= max_agents) continue;
    agents.push_back(std::move(agent));
    met = true;
  }
  if (is_there(socket_in(runtime_dir), made)) unlink(socket_in(runtime_dir).c_str());
  return 0;
}

Outcome<FdStore> FdStore::reach(const std::string& runtime_dir) {
  FdStore fd_store;
  std::string reason = "it ended before it listened";
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (auto connection = os::connect_to(socket_in(runtime_dir), SOCK_SEQPACKET)) {
      const timeval patience{2, 0};
      setsockopt(connection->get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
      fd_store.connection_ = std::move(*connection);
      return fd_store;
    }
    int ready[2];
    if (attempt > 0) break;
    if (pipe2(ready, O_CLOEXEC) != 0) {
      reason = strerror(errno);
      break;
    }
    const os::Fd ready_end(ready[0]);
    os::Fd child_end(ready[1]);
    // Forks twice, so that the fd store has no parent that must wait for it.
    const pid_t between = fork();
    if (between == 0) {
      if (fork() != 0) _exit(0);
      // The copy has no close-on-exec, even if the agent has no standard output and the pipe gets number 1.
      const int inherited = fcntl(child_end.get(), F_DUPFD, 3);
      if (inherited < 0 || dup2(inherited, 1) < 0) _exit(126);
      close(inherited);
      execl("/proc/self/exe", "carve-fdstore", "--fd-store", runtime_dir.c_str(), nullptr);
      _exit(127);
    }
    child_end.reset();
    if (between < 0) reason = fmt::format("fork: {}", strerror(errno));
    if (between > 0) waitpid(between, nullptr, 0);
    pollfd wait{ready_end.get(), POLLIN, 0};
    poll(&wait, 1, 2000);  // The fd store closes its standard output when it listens.
  }
  return failure(FailureKind::unavailable,
                 "cannot start the fd store in {}: {}; check the limits of processes (ulimit -u) and "
                 "descriptors (ulimit -n)",
                 runtime_dir, reason);
}

bool FdStore::ask(char verb, const std::string& name, const os::Fd* give, os::Fd* take) {
  Message message{verb, {}};
  if (name.size() >= sizeof message.name) return false;
  memcpy(message.name, name.data(), name.size());
  const int fd = give != nullptr ? give->get() : -1;
  if (!os::send_with(connection_.get(), &message, sizeof message, &fd, fd >= 0 ? 1 : 0)) return false;
  Message reply{};
  if (os::receive_with(connection_.get(), &reply, sizeof reply, take, take != nullptr ? 1 : 0) !=
      sizeof reply)
    return false;
  return reply.verb == 'y';
}

bool FdStore::hold(const std::string& name, const os::Fd& fd) { return ask('h', name, &fd, nullptr); }
os::Fd FdStore::get(const std::string& name) {
  os::Fd out;
  ask('g', name, nullptr, &out);
  return out;
}
bool FdStore::drop(const std::string& name) { return ask('d', name, nullptr, nullptr); }

}  // namespace carve::node
