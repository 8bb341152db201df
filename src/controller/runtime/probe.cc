#include "controller/runtime/probe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/invariant.h"
#include "os/fd.h"

namespace carve::controller {
namespace {

using K = FailureKind;

sockaddr_in address_of(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// A connection to a port of the range of outgoing ports, on which no process listens, may by chance have that
// port itself, and is then connected to itself.
bool is_connected_to_itself(int fd, uint16_t port) {
  sockaddr_in own{};
  socklen_t size = sizeof own;
  return getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0 && ntohs(own.sin_port) == port;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

Outcome<void> check(const ProbeTarget& target) {
  if (target.port == 0) return failure(K::invalid_argument, "a probe needs a port from 1 to 65535");
  if (!target.path) return {};
  const std::string& path = *target.path;
  if (!path.starts_with('/')) return failure(K::invalid_argument, "the path of a probe begins with '/'");
  if (path.size() > max_probe_path_bytes)
    return failure(K::invalid_argument, "the path of a probe has {} bytes; at most {} are allowed",
                   path.size(), max_probe_path_bytes);
  if (!std::ranges::all_of(path, [](char c) { return c > ' ' && c < 0x7f; }))
    return failure(K::invalid_argument,
                   "the path of a probe has visible ASCII characters only; write others as %XX");
  return {};
}

std::optional<unsigned> read_status_line(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.size() < 12 || !line.starts_with("HTTP/1.") || !is_digit(line[7]) || line[8] != ' ')
    return std::nullopt;
  if (!std::ranges::all_of(line.substr(9, 3), is_digit) || line[9] == '0') return std::nullopt;
  if (line.size() > 12 && line[12] != ' ') return std::nullopt;
  return (line[9] - '0') * 100u + (line[10] - '0') * 10u + (line[11] - '0');
}

struct Prober::Probe {
  ProbeTarget target;
  std::function<void(const ProbeResult&)> done;
  os::Fd fd;
  int error = 0;  // Why there is no connection, found before the loop was asked.
  bool connected = false;
  std::string unsent;
  std::string answer;
};

Prober::Prober(os::Loop& loop) : loop_(loop) {}

Prober::~Prober() {
  for (const auto& [number, probe] : probes_) loop_.forget(probe->fd.get());
}

uint64_t Prober::begin(const ProbeTarget& target, int64_t timeout_ns,
                       std::function<void(const ProbeResult&)> done) {
  invariant(check(target).has_value());
  const uint64_t number = next_++;
  auto probe = std::make_unique<Probe>();
  probe->target = target;
  probe->done = std::move(done);
  if (target.path)
    probe->unsent = fmt::format(
        "GET {} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nUser-Agent: carve-probe\r\nAccept: */*\r\nConnection: "
        "close\r\n\r\n",
        *target.path, target.port);
  probe->fd = os::Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_in address = address_of(target.port);
  if (!probe->fd ||
      (connect(probe->fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
       errno != EINPROGRESS))
    probe->error = errno;
  // Each timer has the number only, which is never used again.
  const auto later = [this, number](int64_t ns, auto act) {
    loop_.after(ns, [weak = std::weak_ptr(self_), number, act] {
      if (const auto self = weak.lock(); self && (*self)->probes_.contains(number)) act(**self);
    });
  };
  if (probe->error != 0)
    later(0, [number, error = probe->error](Prober& self) { self.end(number, false, strerror(error)); });
  else
    loop_.watch(probe->fd.get(), EPOLLOUT, [this, number](uint32_t events) { advance(number, events); });
  later(timeout_ns, [number, timeout_ns](Prober& self) {
    self.end(number, false, fmt::format("no answer within {} ms", timeout_ns / 1'000'000));
  });
  probes_.emplace(number, std::move(probe));
  return number;
}

void Prober::cancel(uint64_t number) {
  const auto found = probes_.find(number);
  if (found == probes_.end()) return;
  loop_.forget(found->second->fd.get());
  probes_.erase(found);
}

void Prober::end(uint64_t number, bool succeeded, std::string what) {
  const auto found = probes_.find(number);
  invariant(found != probes_.end());
  const std::unique_ptr<Probe> probe = std::move(found->second);
  probes_.erase(found);
  loop_.forget(probe->fd.get());
  const ProbeTarget& target = probe->target;
  const std::string question = target.path ? fmt::format("GET {}", *target.path) : "connect";
  probe->done({succeeded, fmt::format("port {}, {}: {}", target.port, question, what)});
}

void Prober::advance(uint64_t number, uint32_t events) {
  const auto found = probes_.find(number);
  if (found == probes_.end()) return;
  Probe& probe = *found->second;
  if (!probe.connected) {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(probe.fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error == 0 && is_connected_to_itself(probe.fd.get(), probe.target.port)) error = ECONNREFUSED;
    if (error != 0) return end(number, false, strerror(error));
    if (!probe.target.path) return end(number, true, "connected");
    probe.connected = true;
  }
  if (!probe.unsent.empty() && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0)
    return send_request(number, probe);
  if (probe.unsent.empty()) read_answer(number, probe);
}

void Prober::send_request(uint64_t number, Probe& probe) {
  const ssize_t count = send(probe.fd.get(), probe.unsent.data(), probe.unsent.size(), MSG_NOSIGNAL);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count < 0) return end(number, false, strerror(errno));
  probe.unsent.erase(0, static_cast<size_t>(count));
  if (probe.unsent.empty()) loop_.watch_for(probe.fd.get(), EPOLLIN);
}

void Prober::read_answer(uint64_t number, Probe& probe) {
  char bytes[max_status_line_bytes];
  const ssize_t count = recv(probe.fd.get(), bytes, max_status_line_bytes - probe.answer.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count < 0) return end(number, false, strerror(errno));
  probe.answer.append(bytes, static_cast<size_t>(count));
  const size_t line_end = probe.answer.find('\n');
  const bool complete = line_end != std::string::npos;
  if (!complete && count == 0) return end(number, false, "the connection was closed without an answer");
  if (!complete && probe.answer.size() < max_status_line_bytes) return;
  const auto status =
      complete ? read_status_line(std::string_view(probe.answer).substr(0, line_end)) : std::nullopt;
  if (!status) return end(number, false, "the answer is not HTTP");
  end(number, *status / 100 == 2 || *status / 100 == 3, fmt::format("status {}", *status));
}

}  // namespace carve::controller
