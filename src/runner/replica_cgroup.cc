#include "runner/replica_cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <sstream>

#include "os/process.h"

namespace carve::runner {
namespace {

constexpr uint64_t cpu_period_us = 100'000;

bool make_if_absent(const std::string& path) { return mkdir(path.c_str(), 0755) == 0 || errno == EEXIST; }

// Returns why this process cannot create cgroups there. Empty if it can.
std::string problem_of(const std::string& directory) {
  if (make_if_absent(directory)) return "";
  return fmt::format("cannot create the cgroup {}: {}", directory, strerror(errno));
}

// Returns whether the cgroup contains only this process and its parent.
bool is_ours_alone(const std::string& directory) {
  std::istringstream lines(os::read_file(directory + "/cgroup.procs").value_or(""));
  for (int pid = 0; lines >> pid;)
    if (pid != getpid() && pid != getppid()) return false;
  return true;
}

// Moves this process and its parent into a child cgroup of their own, because a v2 cgroup that contains
// processes cannot delegate controllers to its children.
void move_below(const std::string& own) {
  const std::string leaf = own + "/controller";
  if (!is_ours_alone(own) || !make_if_absent(leaf)) return;
  for (const pid_t pid : {getppid(), getpid()}) os::write_file(leaf + "/cgroup.procs", std::to_string(pid));
}

// Enables the controller for the child cgroups (v2). Returns whether that succeeded.
bool delegates(const std::string& directory, const char* controller) {
  return os::write_file(directory + "/cgroup.subtree_control", std::string("+") + controller);
}

// Creates the folders, each inside the previous one, and in v2 enables the controller in them. Returns why
// that failed. Empty on success.
std::string make_folders(CgroupVersion version, const std::string& own,
                         const std::vector<std::string>& folders, const char* controller) {
  const auto refusal = [&](const std::string& directory) {
    return fmt::format("the cgroup {} does not delegate the controller {}: {}", directory, controller,
                       strerror(errno));
  };
  const bool is_v2 = version == CgroupVersion::v2;
  if (is_v2 && !delegates(own, controller)) {
    move_below(own);
    if (!delegates(own, controller)) return refusal(own);
  }
  for (const std::string& directory : folders) {
    if (std::string problem = problem_of(directory); !problem.empty()) return problem;
    if (is_v2 && !delegates(directory, controller)) return refusal(directory);
  }
  return "";
}

std::vector<std::string> folders_in(const std::string& path) {
  std::vector<std::string> out;
  DIR* listing = opendir(path.c_str());
  if (listing == nullptr) return out;
  while (const dirent* entry = readdir(listing))
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.') out.emplace_back(entry->d_name);
  closedir(listing);
  return out;
}

bool remove_directory(const std::string& path) { return rmdir(path.c_str()) == 0 || errno == ENOENT; }

Outcome<void> set(const std::string& directory, const char* file, const std::string& value) {
  const std::string path = directory + "/" + file;
  if (os::write_file(path, value)) return {};
  return failure(FailureKind::unavailable, "cannot write '{}' to {}: {}", value, path, strerror(errno));
}

Outcome<void> limit_cpu(CgroupVersion version, const std::string& directory, uint64_t milli) {
  const uint64_t quota_us = std::max(milli, min_cpu_limit_milli) * cpu_period_us / 1000;
  if (version == CgroupVersion::v2)
    return set(directory, "cpu.max", fmt::format("{} {}", quota_us, cpu_period_us));
  if (auto done = set(directory, "cpu.cfs_period_us", fmt::format("{}", cpu_period_us)); !done) return done;
  return set(directory, "cpu.cfs_quota_us", fmt::format("{}", quota_us));
}

Outcome<void> limit_memory(CgroupVersion version, const std::string& directory, uint64_t bytes) {
  const char* const file = version == CgroupVersion::v2 ? "memory.max" : "memory.limit_in_bytes";
  return set(directory, file, fmt::format("{}", bytes));
}

Outcome<os::Fd> open_process_file(const std::string& directory) {
  const std::string path = directory + "/cgroup.procs";
  os::Fd out(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!out) return failure(FailureKind::unavailable, "cannot write {}: {}", path, strerror(errno));
  return out;
}

constexpr std::string_view no_hierarchy = "no cgroup hierarchy is mounted";

}  // namespace

ReplicaCgroups::ReplicaCgroups(const OwnCgroups& own, const std::string& folder) {
  const std::string name = fmt::format("{:08x}", std::hash<std::string>()(folder) & 0xffffffff);
  const auto open_group = [&](const std::optional<OwnCgroup>& found, const char* controller, Group& group) {
    if (!found) return std::string(no_hierarchy);
    const std::string all = found->directory + "/carve-replicas", ours = all + "/" + name;
    std::string problem = make_folders(found->version, found->directory, {all, ours}, controller);
    if (problem.empty()) group = {found->version, ours};
    return problem;
  };
  problems_.cpu = open_group(own.cpu, "cpu", cpu_);
  problems_.memory = open_group(own.memory, "memory", memory_);
  for (const Group* group : {&cpu_, &memory_})
    if (!group->directory.empty() && group->version == CgroupVersion::v2)
      problems_.with_slice =
          "this machine has only cgroup v2, where the agent moves the slice into another cgroup";
  remove_unused();
}

void ReplicaCgroups::remove_unused() {
  for (const Group* group : {&cpu_, &memory_}) {
    if (group->directory.empty()) continue;
    for (const std::string& name : folders_in(group->directory))
      remove_directory(group->directory + "/" + name);
    if (group->version == CgroupVersion::v1) remove_directory(group->directory);
  }
}

Outcome<std::string> ReplicaCgroups::make_directory(const Group& group, const std::string& name) {
  std::string out = group.directory + "/" + name;
  for (const std::string& path : {group.directory, out})
    if (std::string problem = problem_of(path); !problem.empty())
      return failure(FailureKind::unavailable, "{}", problem);
  leftovers_.erase(name);
  return out;
}

Outcome<JoinedCgroups> ReplicaCgroups::make(const std::string& name, const ReplicaLimits& limits,
                                            bool has_slice) {
  JoinedCgroups out;
  std::set<std::string> joined;
  const auto add = [&](const Group& group, const auto& limit) -> Outcome<void> {
    if (group.directory.empty() || (has_slice && group.version == CgroupVersion::v2)) return {};
    const auto directory = make_directory(group, name);
    if (!directory) return tl::unexpected(directory.error());
    if (auto done = limit(group.version, *directory); !done) return done;
    if (!joined.insert(*directory).second) return {};  // In v2 both limits are in the same cgroup.
    auto file = open_process_file(*directory);
    if (!file) return tl::unexpected(file.error());
    out.process_files.push_back(std::move(*file));
    return {};
  };
  if (limits.cpu_milli != 0) {
    const auto done = add(cpu_, [&](CgroupVersion version, const std::string& directory) {
      return limit_cpu(version, directory, limits.cpu_milli);
    });
    if (!done) return tl::unexpected(done.error());
  }
  if (limits.memory_bytes != 0) {
    const auto done = add(memory_, [&](CgroupVersion version, const std::string& directory) {
      out.memory_events =
          directory + (version == CgroupVersion::v2 ? "/memory.events" : "/memory.oom_control");
      return limit_memory(version, directory, limits.memory_bytes);
    });
    if (!done) return tl::unexpected(done.error());
  }
  return out;
}

void ReplicaCgroups::remove(const std::string& name) {
  leftovers_.insert(name);
  std::erase_if(leftovers_, [&](const std::string& leftover) {
    return std::ranges::all_of(std::initializer_list<const Group*>{&cpu_, &memory_}, [&](const Group* group) {
      return group->directory.empty() || remove_directory(group->directory + "/" + leftover);
    });
  });
  for (const Group* group : {&cpu_, &memory_})
    if (!group->directory.empty() && group->version == CgroupVersion::v1) remove_directory(group->directory);
}

OwnCgroups read_own_cgroups() {
  return find_own_cgroups(os::read_file("/proc/self/mountinfo").value_or(""),
                          os::read_file("/proc/self/cgroup").value_or(""));
}

uint64_t memory_kills(std::string_view events) {
  std::istringstream lines{std::string(events)};
  std::string name;
  for (uint64_t count = 0; lines >> name >> count;)
    if (name == "oom_kill") return count;
  return 0;
}

}  // namespace carve::runner
