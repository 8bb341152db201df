// A slice's own cgroup (v2), <v2 root>/carve-<hash>/NAME, if the agent may create one.
//
// A cgroup has three advantages over a process tree. Child processes inherit the membership. The end of the
// last process is an event (cgroup.events: populated 0). A kill reaches all processes at the same time
// (cgroup.kill, Linux 5.14). On hybrid hosts the v2 tree exists next to that of v1; no cgroup controller is
// needed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/failure.h"
#include "os/fd.h"

namespace carve::node {

struct CgroupTree {
  std::string mount;   // "/sys/fs/cgroup/unified"
  std::string prefix;  // Path of the mount's root in /proc/PID/cgroup, without a trailing '/'.
};
// Returns this process's first cgroup2 mount, given the text of mountinfo.
std::optional<CgroupTree> find_cgroup_tree(const std::string& mountinfo);

// Returns the name of the cgroup above those of the slices of the agent with this socket: "carve-1a2b3c4d".
std::string cgroup_group(const std::string& socket);

class Cgroup {
 public:
  // Creates missing directories. Fails without permission. `group` is a name such as "carve-1a2b3c4d".
  static Outcome<Cgroup> make(const CgroupTree& tree, const std::string& group, const std::string& name);

  Outcome<void> add(int pid) const;
  bool populated() const;
  std::vector<int> pids() const;   // Includes the cgroups that the slice created below.
  void kill() const;               // Kills all processes at the same time, including frozen ones.
  bool freeze(bool frozen) const;  // Needs Linux 5.2. No process inside can undo it.
  bool remove();                   // Returns false if a process is in it.

  // A descriptor that becomes readable (EPOLLPRI) when populated() may have changed.
  int events_fd() const { return events_.get(); }
  const std::string& path() const { return path_; }
  const std::string& identity() const { return identity_; }  // As in /proc/PID/cgroup.

 private:
  std::string path_, identity_;
  os::Fd events_;
};

}  // namespace carve::node
