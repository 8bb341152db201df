// The shared memory and the state files of the slices. They are created with a slice, adopted by the next
// agent, and removed with the slice. Between two agents, the fd store holds the report pages.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "node/inspect/inspector.h"
#include "node/pages/fd_store.h"
#include "node/slice/books.h"
#include "node/slice/live_slice.h"
#include "os/loop.h"

namespace carve::node {

class Slices;

// Writes the terms of a slice into its control page. `contexts` contains the charge for a context on the
// device of each part. A new epoch announces the change to the slice's processes.
void fill_control(shm::Control&, const Slice&, const std::vector<Bytes>& contexts);

// The result of recover_report().
enum class Recovery {
  from_process,  // The page was recovered from a process that has it mapped.
  fresh,         // No process had the old page mapped, so a new page loses nothing.
  lost,          // Running processes stay within their quota, but no process can attach.
};

class Pages {
 public:
  Pages(RuntimeDir runtime, FdStore fd_store, Mapped<shm::Heartbeat> heartbeat)
      : runtime_(std::move(runtime)),
        fd_store_(std::move(fd_store)),
        heartbeat_(std::move(heartbeat)),
        heartbeat_reader_(runtime_.heartbeat_descriptor()) {}

  // Creates a control page, which the caller fills, and a report page.
  Outcome<void> make(LiveSlice&);
  // Maps the pages of an earlier agent. Fails if the control page is gone; the report page may be missing.
  Outcome<void> adopt(LiveSlice&);
  // Recovers a report page if the fd store has also ended.
  Recovery recover_report(LiveSlice&, Inspector&);
  void remove(const std::string& slice);  // Also removes its state file.
  // Restores the runtime directory, with the slices' state files, if it was removed. Their pages stay mapped,
  // and the fd store holds them for the next agent. Returns whether the directory was removed.
  Outcome<bool> restore(os::Loop&, const Slices&);

  void write_state(const LiveSlice&);
  // Returns what an earlier agent of this boot stored; no value if there is nothing or it cannot be read.
  std::optional<StateFile> read_state(const std::string& slice) const;
  // Returns the ledger's mark of this boot; no value if there is none or it cannot be read.
  std::optional<LedgerMark> read_mark() const;
  void write_mark(const LedgerMark&);
  std::vector<std::string> state_files() const { return runtime_.state_files(); }

  // Returns the descriptors for a process that attaches, in the order of wire/shm/attach.h; empty if the
  // agent has no free descriptor.
  std::vector<os::Fd> descriptors_for(const LiveSlice&) const;

  const RuntimeDir& runtime() const { return runtime_; }
  shm::Heartbeat& heartbeat() const { return *heartbeat_; }
  // Restarts the fd store if it ends, and passes the report pages of all slices to it.
  void watch_fd_store(os::Loop&, const Slices&);

 private:
  void hold_report(const LiveSlice&);
  void keep_files(LiveSlice&);
  bool hold_all(const Slices&);

  RuntimeDir runtime_;
  FdStore fd_store_;
  Mapped<shm::Heartbeat> heartbeat_;
  os::Fd heartbeat_reader_;      // The descriptor that is passed to processes.
  bool holds_controls_ = false;  // Whether the fd store has the control pages, which have no path.
};

}  // namespace carve::node
