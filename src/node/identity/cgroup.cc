#include "node/identity/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "os/process.h"

namespace carve::node {
namespace {

std::vector<std::string> children_of(const std::string& path) {
  std::vector<std::string> out;
  DIR* listing = opendir(path.c_str());
  if (listing == nullptr) return out;
  while (const dirent* entry = readdir(listing))
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.') out.push_back(path + "/" + entry->d_name);
  closedir(listing);
  return out;
}

void collect(const std::string& path, std::vector<int>& pids, int depth) {
  std::istringstream lines(os::read_file(path + "/cgroup.procs").value_or(""));
  for (int pid = 0; lines >> pid;) pids.push_back(pid);
  if (depth > 0)
    for (const std::string& child : children_of(path)) collect(child, pids, depth - 1);
}

bool remove_tree(const std::string& path, int depth) {
  if (depth > 0)
    for (const std::string& child : children_of(path)) remove_tree(child, depth - 1);
  return rmdir(path.c_str()) == 0 || errno == ENOENT;
}

constexpr int deepest = 32;

}  // namespace

std::optional<CgroupTree> find_cgroup_tree(const std::string& mountinfo) {
  // A line of proc(5)'s mountinfo: "ID PARENT MAJOR:MINOR ROOT MOUNT OPTIONS [TAGS] - TYPE SOURCE OPTIONS".
  std::istringstream lines(mountinfo);
  for (std::string line; std::getline(lines, line);) {
    const size_t dash = line.find(" - cgroup2 ");
    if (dash == std::string::npos) continue;
    std::istringstream fields(line);
    std::string id, parent, device, root, mount;
    fields >> id >> parent >> device >> root >> mount;
    return CgroupTree{mount, root == "/" ? "" : root};
  }
  return std::nullopt;
}

std::string cgroup_group(const std::string& socket) {
  uint32_t hash = 2166136261u;  // FNV-1a
  for (const char c : socket) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return fmt::format("carve-{:08x}", hash);
}

Outcome<Cgroup> Cgroup::make(const CgroupTree& tree, const std::string& group, const std::string& name) {
  Cgroup out;
  const std::string above = tree.mount + "/" + group;
  out.path_ = above + "/" + name;
  out.identity_ = tree.prefix + "/" + group + "/" + name;
  for (const std::string& path : {above, out.path_})
    if (mkdir(path.c_str(), 0755) != 0 && errno != EEXIST)
      return failure(FailureKind::permission_denied, "cannot create the cgroup {}: {}", path,
                     strerror(errno));
  out.events_ = os::Fd(open((out.path_ + "/cgroup.events").c_str(), O_RDONLY | O_CLOEXEC));
  if (!out.events_)
    return failure(FailureKind::permission_denied, "cannot read {}/cgroup.events: {}", out.path_,
                   strerror(errno));
  if (access((out.path_ + "/cgroup.procs").c_str(), W_OK) != 0)
    return failure(FailureKind::permission_denied, "cannot write {}/cgroup.procs: {}", out.path_,
                   strerror(errno));
  return out;
}

Outcome<void> Cgroup::add(int pid) const {
  if (!os::write_file(path_ + "/cgroup.procs", std::to_string(pid)))
    return failure(FailureKind::unavailable, "cannot move process {} into {}: {}", pid, path_,
                   strerror(errno));
  return {};
}

bool Cgroup::populated() const {
  char text[256] = "";
  // Reads from the start each time, which also acknowledges the event.
  if (pread(events_.get(), text, sizeof text - 1, 0) <= 0) return false;
  return strstr(text, "populated 1") != nullptr;
}

std::vector<int> Cgroup::pids() const {
  std::vector<int> out;
  collect(path_, out, deepest);
  return out;
}

void Cgroup::kill() const {
  if (os::write_file(path_ + "/cgroup.kill", "1")) return;
  for (const int pid : pids()) ::kill(pid, SIGKILL);  // For kernels before Linux 5.14.
}

bool Cgroup::freeze(bool frozen) const {
  return os::write_file(path_ + "/cgroup.freeze", frozen ? "1" : "0");
}

bool Cgroup::remove() { return remove_tree(path_, deepest); }

}  // namespace carve::node
