#include "controller/runtime/prober.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "controller/runtime/port_owner.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/mutex.h"
#include "os/wakeup.h"

namespace carve::controller {
namespace {

constexpr size_t status_line_bytes = 12;  // "HTTP/1.1 200"
constexpr int idle_poll_ms = 1000;
constexpr size_t max_leftover_bytes = 64 << 10;  // Rest of one response.
constexpr size_t max_leftovers = 256;

// A connection whose response has been evaluated. The rest of the response is read, because closing a socket
// with unread bytes resets the connection, which many servers log as an error.
struct Leftover {
  os::Fd socket;
  int64_t deadline_ns = 0;
  size_t bytes_left = max_leftover_bytes;
};

// One probe in progress.
struct Attempt {
  os::Fd socket;
  bool is_connected = false;
  int64_t deadline_ns = 0;
  std::string received;
};

os::Fd begin_connect(uint32_t port) {
  os::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int done = connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  return done == 0 || errno == EINPROGRESS ? std::move(socket) : os::Fd();
}

}  // namespace

std::optional<bool> http_success(std::string_view response) {
  constexpr std::string_view version = "HTTP/1.";
  if (!response.starts_with(version.substr(0, response.size()))) return false;
  if (response.size() < status_line_bytes) return std::nullopt;
  return response[8] == ' ' && (response[9] == '2' || response[9] == '3');
}

struct Prober::Shared {
  struct Probe {
    ProbeTarget target;
    bool is_asked = true;
    std::optional<ProbeResult> result;
    int64_t next_ns = 0;
    std::optional<Attempt> attempt;  // Used only by the thread.
    std::optional<bool> unverified;  // Result of a listener whose owner is not known yet.
  };
  os::Mutex mutex;
  std::map<std::string, Probe> probes GUARDED_BY(mutex);
  bool stops GUARDED_BY(mutex) = false;
  const os::Wakeup wakeup;

  PortOwners owners;                // Used only by the thread.
  std::vector<Leftover> leftovers;  // Used only by the thread.

  void run() EXCLUDES(mutex);
  void verify() EXCLUDES(mutex);
  int64_t begin_due(int64_t now) REQUIRES(mutex);
  void advance(Probe& probe, short events) REQUIRES(mutex);
  void read_leftovers(const std::vector<int>& readable);
  static void end(Probe& probe, bool success);
};

void Prober::Shared::end(Probe& probe, bool success) {
  const bool is_connected = probe.attempt && probe.attempt->is_connected;
  probe.attempt.reset();
  if (!is_connected)
    probe.result = ProbeResult{.is_success = false, .foreign = ""};
  else
    probe.unverified = success;
}

// Determines the owners of the listeners that have answered. Runs without the lock because it reads /proc.
void Prober::Shared::verify() {
  struct Answered {
    std::string name;
    ProbeTarget target;
    bool is_success;
  };
  std::vector<Answered> answered;
  {
    const os::MutexLock lock(mutex);
    for (auto& [name, probe] : probes)
      if (const auto success = std::exchange(probe.unverified, std::nullopt))
        answered.push_back({name, probe.target, *success});
  }
  for (const Answered& a : answered) {
    const PortOwner owner = owners.owner_of(static_cast<uint16_t>(a.target.port), a.target.supervisor);
    const os::MutexLock lock(mutex);
    const auto found = probes.find(a.name);
    if (found == probes.end() || found->second.target != a.target) continue;
    found->second.result = ProbeResult{.is_success = a.is_success && owner.kind == PortOwner::Kind::program,
                                       .foreign = owner.message};
  }
}

// Begins the probes that are due and ends those that are late. Returns when the next probe is due.
int64_t Prober::Shared::begin_due(int64_t now) {
  int64_t next = now + idle_poll_ms * os::millisecond;
  for (auto& [name, probe] : probes) {
    if (probe.attempt && probe.attempt->deadline_ns <= now) end(probe, false);
    if (!probe.attempt && probe.next_ns <= now) {
      probe.next_ns = now + probe.target.period_ns;
      os::Fd socket = begin_connect(probe.target.port);
      if (socket)
        probe.attempt = Attempt{.socket = std::move(socket), .deadline_ns = now + probe.target.timeout_ns};
      else
        end(probe, false);
    }
    next = std::min(next, probe.attempt ? probe.attempt->deadline_ns : probe.next_ns);
  }
  return next;
}

void Prober::Shared::advance(Probe& probe, short events) {
  Attempt& attempt = *probe.attempt;
  if (!attempt.is_connected) {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(attempt.socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return end(probe, false);
    attempt.is_connected = true;
    if (probe.target.path.empty()) return end(probe, true);
    const std::string request = fmt::format(
        "GET {} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nUser-Agent: carve-probe\r\nConnection: close\r\n\r\n",
        probe.target.path, probe.target.port);
    if (send(attempt.socket.get(), request.data(), request.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(request.size()))
      return end(probe, false);
    return;
  }
  if ((events & (POLLIN | POLLHUP | POLLERR)) == 0) return;
  char bytes[64];
  const ssize_t got = recv(attempt.socket.get(), bytes, sizeof bytes, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return end(probe, false);
  attempt.received.append(bytes, static_cast<size_t>(got));
  if (const auto success = http_success(attempt.received)) {
    if (leftovers.size() < max_leftovers)
      leftovers.push_back({.socket = std::move(attempt.socket), .deadline_ns = attempt.deadline_ns});
    end(probe, *success);
  }
}

// Reads from the sockets of `readable` and closes those whose response is complete, too long or late.
void Prober::Shared::read_leftovers(const std::vector<int>& readable) {
  char bytes[4096];
  const int64_t now = os::monotonic_ns();
  std::erase_if(leftovers, [&](Leftover& one) {
    if (one.deadline_ns <= now) return true;
    if (std::ranges::find(readable, one.socket.get()) == readable.end()) return false;
    const ssize_t got = recv(one.socket.get(), bytes, sizeof bytes, 0);
    if (got < 0) return errno != EAGAIN && errno != EINTR;
    one.bytes_left -= std::min(one.bytes_left, static_cast<size_t>(got));
    return got == 0 || one.bytes_left == 0;
  });
}

void Prober::Shared::run() {
  for (;;) {
    std::vector<pollfd> polled;
    std::vector<std::string> names;
    int64_t next = 0;
    {
      const os::MutexLock lock(mutex);
      if (stops) return;
      next = begin_due(os::monotonic_ns());
      for (auto& [name, probe] : probes)
        if (probe.attempt) {
          polled.push_back({probe.attempt->socket.get(),
                            static_cast<short>(probe.attempt->is_connected ? POLLIN : POLLOUT), 0});
          names.push_back(name);
        }
    }
    for (const Leftover& one : leftovers) {
      polled.push_back({one.socket.get(), POLLIN, 0});
      next = std::min(next, one.deadline_ns);
    }
    polled.push_back({wakeup.fd(), POLLIN, 0});
    const int64_t wait_ms = (next - os::monotonic_ns()) / os::millisecond + 1;
    poll(polled.data(), polled.size(), static_cast<int>(std::clamp<int64_t>(wait_ms, 1, idle_poll_ms)));
    if (polled.back().revents != 0) wakeup.take();
    std::vector<int> readable;
    for (size_t i = names.size(); i + 1 < polled.size(); ++i)
      if (polled[i].revents != 0) readable.push_back(polled[i].fd);
    read_leftovers(readable);
    {
      const os::MutexLock lock(mutex);
      for (size_t i = 0; i < names.size(); ++i) {
        const auto found = probes.find(names[i]);
        if (polled[i].revents == 0 || found == probes.end() || !found->second.attempt) continue;
        if (found->second.attempt->socket.get() == polled[i].fd) advance(found->second, polled[i].revents);
      }
    }
    verify();
  }
}

Prober::Prober() : shared_(std::make_unique<Shared>()), thread_([this] { shared_->run(); }) {}

Prober::~Prober() {
  {
    const os::MutexLock lock(shared_->mutex);
    shared_->stops = true;
  }
  shared_->wakeup.set();
  thread_.join();
}

std::optional<ProbeResult> Prober::probe(const std::string& name, const ProbeTarget& target) {
  bool is_new = false;
  std::optional<ProbeResult> result;
  {
    const os::MutexLock lock(shared_->mutex);
    auto& probe = shared_->probes[name];
    is_new = probe.target != target;
    if (is_new)
      probe = {
          .target = target, .is_asked = true, .result = {}, .next_ns = 0, .attempt = {}, .unverified = {}};
    probe.is_asked = true;
    result = std::exchange(probe.result, std::nullopt);
  }
  if (is_new) shared_->wakeup.set();
  return result;
}

void Prober::forget_unasked() {
  const os::MutexLock lock(shared_->mutex);
  for (auto probe = shared_->probes.begin(); probe != shared_->probes.end();)
    probe = std::exchange(probe->second.is_asked, false) ? std::next(probe) : shared_->probes.erase(probe);
}

}  // namespace carve::controller
