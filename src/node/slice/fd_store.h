// Holds the slices' Report descriptors while the agent is away.
//
// A Report is a memfd: it lives as long as somebody has it open or mapped, but after a kill -9 of the agent
// only its slices do, and they have closed their descriptors. Reopening it through /proc/PID/map_files needs
// CAP_CHECKPOINT_RESTORE, so it works for root alone; a sealed file with a name does not exist on Linux. So a
// child of the agent, in its own session, holds the descriptors over a socket in the runtime directory. It
// knows nothing and decides nothing; it costs 0.2 MiB of its own and no time while an agent is connected. It
// ends when it holds nothing and no agent is connected, or when its directory is gone. If it dies, the agent
// starts another and hands over everything again.
#pragma once

#include <string>

#include "core/failure.h"
#include "node/os/fd.h"

namespace carve::node {

// The agent's end of it.
class FdStore {
 public:
  // Connects to the fd store of this runtime directory, starting one where there is none.
  static Outcome<FdStore> reach(const std::string& runtime_dir);

  bool hold(const std::string& name, const Fd& fd);  // False: it does not answer; reach another.
  Fd get(const std::string& name);                   // Empty where it does not hold it.
  bool drop(const std::string& name);

  int fd() const { return connection_.get(); }  // Readable only when the fd store has died.

 private:
  bool ask(char verb, const std::string& name, const Fd* give, Fd* take);
  Fd connection_;
};

// The fd store itself: `carved --fd-store DIR`. Returns the exit status.
int run_fd_store(const std::string& runtime_dir);

}  // namespace carve::node
