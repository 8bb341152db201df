#include "controller/runtime/port_owner.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <vector>

namespace carve::controller {
namespace {

using Kind = PortOwner::Kind;

constexpr size_t max_known = 4096;
constexpr size_t max_files = 65536;  // Per process.

// Returns the supervisor and all processes below it.
std::vector<pid_t> processes_of(const os::ProcessId& supervisor) {
  std::multimap<pid_t, pid_t> children;
  bool lives = false;
  for (const os::ProcessStat& process : os::all_processes()) {
    children.emplace(process.parent, process.id.pid);
    lives |= process.id == supervisor;
  }
  std::vector<pid_t> out;
  if (!lives) return out;
  out.push_back(supervisor.pid);
  for (size_t i = 0; i < out.size(); ++i) {
    const auto [first, last] = children.equal_range(out[i]);
    for (auto child = first; child != last; ++child) out.push_back(child->second);
  }
  return out;
}

enum class Found : uint8_t { open, not_open, not_readable };

// Returns whether the process has the socket open.
Found finds_socket(pid_t pid, uint32_t inode) {
  const std::string folder = fmt::format("/proc/{}/fd", pid);
  DIR* const files = opendir(folder.c_str());
  if (files == nullptr) return errno == ENOENT ? Found::not_open : Found::not_readable;
  const std::string wanted = fmt::format("socket:[{}]", inode);
  Found out = Found::not_open;
  size_t seen = 0;
  while (const dirent* const entry = readdir(files)) {
    char target[64];
    const ssize_t size = readlinkat(dirfd(files), entry->d_name, target, sizeof target);
    if (size < 0 && errno == EACCES) out = Found::not_readable;
    if (size > 0 && std::string_view(target, static_cast<size_t>(size)) == wanted) out = Found::open;
    if (out == Found::open || ++seen == max_files) break;
  }
  closedir(files);
  return out;
}

// Returns the inodes of the processes' cgroups (v2), by which the kernel identifies cgroups.
std::set<uint64_t> cgroups_of(const std::vector<pid_t>& pids) {
  std::set<std::string> paths;
  for (const pid_t pid : pids) {
    const auto cgroups = os::cgroups_of(pid);
    if (const auto v2 = cgroups.find(""); v2 != cgroups.end()) paths.insert(v2->second);
  }
  std::set<uint64_t> out;
  for (const std::string& path : paths)
    for (const char* const mount : {"/sys/fs/cgroup/unified", "/sys/fs/cgroup"}) {
      struct stat seen {};
      if (stat((mount + path).c_str(), &seen) != 0) continue;
      out.insert(seen.st_ino);
      break;
    }
  return out;
}

// Returns whether one of the processes runs as the user, who may differ from the owner in a container.
bool is_user_of(const std::vector<pid_t>& pids, uint32_t uid) {
  return std::ranges::any_of(pids, [uid](pid_t pid) {
    struct stat seen {};
    return stat(fmt::format("/proc/{}", pid).c_str(), &seen) == 0 && seen.st_uid == uid;
  });
}

}  // namespace

PortOwner PortOwners::look_up(uint16_t port, const os::Listener& listener, const os::ProcessId& supervisor) {
  const std::vector<pid_t> processes = processes_of(supervisor);
  if (processes.empty()) return {Kind::unknown, "the replica's supervisor has ended"};
  bool all_readable = true;
  for (const pid_t pid : processes) switch (finds_socket(pid, listener.inode)) {
      case Found::open: return {Kind::program, ""};
      case Found::not_open: break;
      case Found::not_readable: all_readable = false; break;
    }
  const PortOwner other{Kind::other, fmt::format("port {} is used by another program of uid {}; end that "
                                                 "program, or restart the replica to get another port",
                                                 port, listener.uid)};
  if (all_readable) return other;
  const std::set<uint64_t> cgroups = cgroups_of(processes);
  const bool knows_cgroups = listener.cgroup && !cgroups.empty();
  if (knows_cgroups && !cgroups.contains(*listener.cgroup)) return other;
  if (!is_user_of(processes, listener.uid)) return other;
  if (knows_cgroups) return {Kind::program, ""};
  return {
      Kind::unknown,
      fmt::format("port {}: the program that listens there is unknown, because the controller cannot read "
                  "the processes of uid {} or find their cgroup; mount cgroup2 at /sys/fs/cgroup "
                  "(Linux 5.9 or newer), or run the controller as that user or as root",
                  port, listener.uid)};
}

PortOwner PortOwners::owner_of(uint16_t port, const os::ProcessId& supervisor) {
  const auto listeners = os::loopback_listeners(port);
  if (!listeners) return {Kind::unknown, fmt::format("port {}: {}", port, listeners.error().message)};
  if (known_.size() > max_known) known_.clear();
  PortOwner out;
  for (const os::Listener& listener : *listeners) {
    const auto known = known_.find(listener.cookie);
    if (known != known_.end() && known->second == supervisor) {
      out.kind = Kind::program;
      continue;
    }
    out = look_up(port, listener, supervisor);
    if (out.kind != Kind::program) return out;
    known_[listener.cookie] = supervisor;
  }
  return out;
}

}  // namespace carve::controller
