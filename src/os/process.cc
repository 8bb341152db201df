#include "os/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace carve::os {

std::optional<std::string> read_file(const std::string& path, size_t most) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  std::string out;
  char buffer[16384];
  while (out.size() < most) {
    const ssize_t n = read(fd.get(), buffer, std::min(sizeof buffer, most - out.size()));
    if (n < 0) return std::nullopt;
    if (n == 0) break;
    out.append(buffer, static_cast<size_t>(n));
  }
  return out;
}

bool write_file(const std::string& path, std::string_view text) {
  const Fd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return fd && write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

std::optional<ProcessStat> stat_of(pid_t pid) {
  const auto text = read_file(fmt::format("/proc/{}/stat", pid));
  if (!text) return std::nullopt;
  // The format is "PID (name, with any characters) S PPID ...", so the fields are counted after the last ')'.
  const size_t name_end = text->rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  ProcessStat out;
  out.id.pid = pid;
  unsigned long long start = 0;
  const int read = sscanf(text->c_str() + name_end + 1,
                          " %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                          &out.state, &out.parent, &out.group, &out.session, &start);
  if (read != 5) return std::nullopt;
  if (const size_t name = text->find('('); name < name_end)
    out.name = text->substr(name + 1, name_end - name - 1);
  out.id.start = start;
  return out;
}

std::vector<ProcessStat> all_processes() {
  std::vector<ProcessStat> out;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return out;
  while (const dirent* entry = readdir(proc)) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    if (auto stat = stat_of(static_cast<pid_t>(strtol(entry->d_name, nullptr, 10)))) out.push_back(*stat);
  }
  closedir(proc);
  return out;
}

pid_t inner_pid_of(pid_t pid) {
  const std::string text = read_file(fmt::format("/proc/{}/status", pid)).value_or("");
  const size_t line = text.find("\nNSpid:");
  if (line == std::string::npos) return 0;
  const size_t end = text.find('\n', line + 1);
  const size_t last = text.find_last_of(" \t", end);
  return static_cast<pid_t>(strtol(text.c_str() + last + 1, nullptr, 10));
}

uint64_t pid_namespace_of(pid_t pid) {
  struct stat info {};
  return stat(fmt::format("/proc/{}/ns/pid", pid).c_str(), &info) == 0 ? info.st_ino : 0;
}

std::map<std::string, std::string> cgroups_of(pid_t pid) {
  std::map<std::string, std::string> out;
  const std::string text = read_file(fmt::format("/proc/{}/cgroup", pid)).value_or("");
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first != std::string::npos && second != std::string::npos)
      out[line.substr(first + 1, second - first - 1)] = line.substr(second + 1);
  }
  return out;
}

Fd open_process(const ProcessId& id) {
  Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, id.pid, 0)));
  if (!pidfd) return {};
  const auto now = stat_of(id.pid);
  if (!now || now->id != id || !alive(pidfd)) return {};
  return pidfd;
}

std::optional<ProcessId> process_of(const Fd& pidfd) {
  const std::string info = read_file(fmt::format("/proc/self/fdinfo/{}", pidfd.get())).value_or("");
  const size_t line = info.find("Pid:");
  if (line == std::string::npos) return std::nullopt;
  const auto pid = static_cast<pid_t>(strtol(info.c_str() + line + 4, nullptr, 10));
  if (pid <= 0) return std::nullopt;
  const auto stat = stat_of(pid);
  if (!stat || !alive(pidfd)) return std::nullopt;
  return stat->id;
}

bool alive(const Fd& pidfd) {
  pollfd poll_for{pidfd.get(), POLLIN, 0};
  return poll(&poll_for, 1, 0) == 0;
}

void send_signal(const Fd& pidfd, int signal) {
  syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0);
}

const std::string& boot_id() {
  static const std::string known = [] {
    std::string id = read_file("/proc/sys/kernel/random/boot_id").value_or("unknown");
    while (!id.empty() && id.back() == '\n') id.pop_back();
    return id;
  }();
  return known;
}

std::string own_folder() {
  char own[4096] = "";
  const ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
  const std::string path(own, static_cast<size_t>(std::max<ssize_t>(length, 0)));
  return path.substr(0, path.rfind('/'));
}

}  // namespace carve::os
