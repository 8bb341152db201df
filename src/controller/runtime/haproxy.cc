#include "controller/runtime/haproxy.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <set>

#include "os/directory.h"
#include "os/log.h"
#include "os/process.h"
#include "os/socket.h"

extern char** environ;

namespace carve::controller {
namespace {

using K = FailureKind;
using workload::EndpointState;

constexpr const char* program = "haproxy";
constexpr int answer_patience_ms = 3000;
constexpr size_t max_answer_bytes = 4 << 20;
constexpr int load_attempts = 250;  // Of 20 ms: a new configuration is in force within 5 s.

// Runs a command to its end and returns its standard error's last line if it failed.
Outcome<void> run_command(const std::vector<std::string>& words, const std::string& error_file) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, error_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                   0600);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, words[0].c_str(), &files, &attributes, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error == ENOENT)
    return failure(K::unavailable,
                   "{} is not installed, and it carries the traffic of services with a port; "
                   "install the package haproxy",
                   words[0]);
  if (error != 0) return failure(K::unavailable, "{}: {}", words[0], strerror(error));
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  std::string text = os::read_file(error_file).value_or("");
  text = text.substr(text.find("[ALERT]") == text.npos ? 0 : text.find("[ALERT]"));
  return failure(K::unavailable, "{}: {}", words[0], text.substr(0, std::min(text.find('\n'), size_t{300})));
}

}  // namespace

HaProxy::HaProxy(std::string folder)
    : folder_(std::move(folder)),
      config_(folder_ + "/haproxy.cfg"),
      pid_file_(folder_ + "/haproxy.pid"),
      admin_socket_(folder_ + "/admin.sock") {}

bool HaProxy::is_running() const { return ask("show info").has_value(); }

Outcome<std::string> HaProxy::ask(const std::string& command) const {
  auto socket = os::connect_to(admin_socket_, SOCK_STREAM);
  if (!socket) return tl::unexpected(socket.error());
  const std::string line = command + "\n";
  if (send(socket->get(), line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
    return failure(K::unavailable, "haproxy does not read its admin socket {}", admin_socket_);
  shutdown(socket->get(), SHUT_WR);
  std::string out;
  char bytes[16 << 10];
  for (;;) {
    pollfd readable{socket->get(), POLLIN, 0};
    if (poll(&readable, 1, answer_patience_ms) <= 0)
      return failure(K::unavailable, "haproxy did not answer '{}' in time", command);
    const ssize_t got = recv(socket->get(), bytes, sizeof bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return out;
    out.append(bytes, static_cast<size_t>(got));
    if (out.size() > max_answer_bytes)
      return failure(K::unavailable, "haproxy answered '{}' without end", command);
  }
}

Outcome<std::vector<SeenServer>> HaProxy::servers() const {
  const auto csv = ask("show stat -1 4 -1");  // All proxies, servers alone.
  if (!csv) return tl::unexpected(csv.error());
  return parse_servers(*csv);
}

Outcome<std::vector<std::string>> HaProxy::frontends() const {
  const auto csv = ask("show stat -1 1 -1");  // All proxies, frontends alone.
  if (!csv) return tl::unexpected(csv.error());
  std::vector<std::string> out;
  for (size_t begin = 0; begin < csv->size();) {
    const size_t end = std::min(csv->find('\n', begin), csv->size());
    if (const std::string line = csv->substr(begin, end - begin); line.starts_with("endpoint-"))
      out.push_back(line.substr(0, line.find(',')));
    begin = end + 1;
  }
  return out;
}

// Writes the configuration, checks it, and makes it that of the running HAProxy or of a new one.
Outcome<void> HaProxy::run(const std::vector<ServiceEndpoint>& endpoints) {
  if (auto written = os::replace_file(config_, haproxy_config(endpoints, admin_socket_)); !written)
    return written;
  const std::string errors = folder_ + "/haproxy.errors";
  if (auto good = run_command({program, "-c", "-f", config_}, errors); !good) return good;
  if (is_running()) {
    pid_t master = 0;
    const std::string text = os::read_file(pid_file_).value_or("");
    std::from_chars(text.data(), text.data() + text.size(), master);
    if (master <= 0 || kill(master, SIGUSR2) != 0)
      return failure(K::unavailable, "{}: no haproxy has this pid", pid_file_);
  } else if (auto started = run_command({program, "-W", "-D", "-f", config_, "-p", pid_file_}, errors);
             !started) {
    return started;
  }
  std::set<std::string> wanted;
  for (const ServiceEndpoint& endpoint : endpoints) wanted.insert(endpoint_name(endpoint.port));
  for (int attempt = 0; attempt < load_attempts; ++attempt) {
    const auto seen = frontends();
    if (seen && std::set<std::string>(seen->begin(), seen->end()) == wanted) return {};
    usleep(20'000);
  }
  return failure(K::unavailable, "haproxy did not load {} in time", config_);
}

Outcome<void> HaProxy::publish(const std::vector<ServiceEndpoint>& wanted) {
  if (is_known_ && wanted == published_ && !drains_) return {};
  if (wanted.empty() && !is_known_ && !is_running()) return {};
  std::set<std::string> names;
  for (const ServiceEndpoint& endpoint : wanted) names.insert(endpoint_name(endpoint.port));
  const auto loaded = frontends();
  if (!loaded || std::set<std::string>(loaded->begin(), loaded->end()) != names) {
    os::log::info("haproxy: {} endpoints", wanted.size());
    if (auto done = run(wanted); !done) return done;
  } else if (wanted != published_ || !is_known_) {
    // For a reload, and for the next HAProxy after a boot.
    if (auto written = os::replace_file(config_, haproxy_config(wanted, admin_socket_)); !written)
      return written;
  }
  const auto seen = servers();
  if (!seen) return tl::unexpected(seen.error());
  for (const std::string& command : server_commands(wanted, *seen)) {
    const auto answer = ask(command);
    if (!answer) return tl::unexpected(answer.error());
    os::log::debug("haproxy: {}: {}", command, answer->substr(0, answer->find('\n')));
  }
  published_ = wanted;
  is_known_ = true;
  return {};
}

Outcome<std::map<std::string, EndpointState>> HaProxy::states() {
  std::map<std::string, EndpointState> out;
  if (!is_running()) {
    is_known_ = false;  // It was killed, or it never ran.
    drains_ = false;
    return out;
  }
  const auto seen = servers();
  if (!seen) return tl::unexpected(seen.error());
  drains_ = false;
  for (const SeenServer& server : *seen) {
    out[server.name] = server.is_ready ? EndpointState::serving : EndpointState::draining;
    drains_ |= !server.is_ready;
  }
  return out;
}

void HaProxy::end() {
  pid_t master = 0;
  const std::string text = os::read_file(pid_file_).value_or("");
  std::from_chars(text.data(), text.data() + text.size(), master);
  if (master > 0 && is_running()) kill(master, SIGTERM);
}

}  // namespace carve::controller
