// Holds the descriptors of the slices' report pages while no agent runs.
//
// A report page is a memfd: it lives as long as a process has it open or mapped. After a kill -9 of the agent
// only the slices' processes have it mapped, and they have closed their descriptors. Reopening it through
// /proc/PID/map_files needs CAP_CHECKPOINT_RESTORE, so only root can do it, and Linux has no sealed files
// with names. So a child of the agent, in its own session, receives the descriptors over a socket in the
// runtime directory and holds them. It makes no decisions; while an agent is connected it uses 0.2 MiB of
// memory and no CPU time. It ends when it holds no descriptor and no agent is connected, or when its
// directory is gone. If it ends early, the agent starts another one and passes it all descriptors again.
#pragma once

#include <string>

#include "core/failure.h"
#include "os/fd.h"

namespace carve::node {

// The agent's connection to the fd store.
class FdStore {
 public:
  // Connects to the fd store of this runtime directory. Starts one if there is none.
  static Outcome<FdStore> reach(const std::string& runtime_dir);

  bool hold(const std::string& name,
            const os::Fd& fd);          // Fails if the fd store does not respond; then call reach().
  os::Fd get(const std::string& name);  // Empty if the fd store does not have it.
  bool drop(const std::string& name);

  int fd() const { return connection_.get(); }  // Becomes readable only when the fd store has ended.

 private:
  bool ask(char verb, const std::string& name, const os::Fd* give, os::Fd* take);
  os::Fd connection_;
};

// Runs the fd store: `carved --fd-store DIR`. Returns the exit status.
int run_fd_store(const std::string& runtime_dir);

}  // namespace carve::node
