// A slice's own cgroup (v2), where the agent may make one: <v2 root>/carve-<hash>/NAME.
//
// It buys three things that a process tree cannot give: membership is inherited whatever a process does, the
// end of the last process is an event (cgroup.events: populated 0), and stopping reaches everybody at once
// (cgroup.kill, Linux 5.14). On hybrid hosts the v2 tree lies beside v1's; no controller is needed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/failure.h"
#include "node/os/fd.h"

namespace carve::node {

struct CgroupTree {
  std::string mount;   // "/sys/fs/cgroup/unified"
  std::string prefix;  // What /proc/PID/cgroup shows for the mount's own root, without a trailing '/'.
};
// The first cgroup2 mount of this process, read from mountinfo's text.
std::optional<CgroupTree> find_cgroup_tree(const std::string& mountinfo);

class Cgroup {
 public:
  // `group`: "carve-1a2b3c4d". Makes what is missing; fails where this user may not.
  static Outcome<Cgroup> make(const CgroupTree& tree, const std::string& group, const std::string& name);

  Outcome<void> add(int pid) const;
  bool populated() const;
  std::vector<int> pids() const;   // Also of the groups that a slice made below.
  void kill() const;               // Everybody, now; also while frozen.
  bool freeze(bool frozen) const;  // Linux 5.2. Nobody inside can undo it.
  bool remove();                   // False while somebody is in it.

  // Becomes readable (EPOLLPRI) when populated() may have changed.
  int events_fd() const { return events_.get(); }
  const std::string& identity() const { return identity_; }  // As /proc/PID/cgroup shows it.

 private:
  std::string path_, identity_;
  Fd events_;
};

}  // namespace carve::node
