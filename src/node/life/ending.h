// How a slice ends: by itself with its last process, or by a stop, which kills its processes.
//
// The end of a process is reported by its pidfd, and the end of a cgroup's last process by its events file. A
// slice whose lifetime is until_deleted ends only after a stop.
#pragma once

#include <string>

#include "node/slice/node_state.h"

namespace carve::node {

class Ending {
 public:
  // `node` must outlive this object.
  explicit Ending(NodeState& node) : node_(node) {}

  // Each function watches for the end of one process of the slice. If the process has already ended, the loop
  // runs the handler next.
  void watch_creator(LiveSlice& slice) { watch(slice, slice.creator, &Ending::creator_ended); }
  void watch_root(LiveSlice& slice) { watch(slice, slice.root, &Ending::root_ended); }
  void watch_supervisor(LiveSlice& slice) { watch(slice, slice.supervisor, &Ending::supervisor_ended); }
  void watch_newest_container(LiveSlice& slice) {
    watch(slice, slice.containers.back(), &Ending::container_ended);
  }
  void watch_cgroup(LiveSlice&);

  // Sends SIGTERM at the slice's time limit, and ends the slice after the grace time. Does nothing if it has no
  // limit. Must be called again when the limit has changed.
  void watch_deadline(LiveSlice&);

  // Kills the slice's processes until none is left, after which the slice ends.
  void stop(LiveSlice&, const std::string& why);
  // Ends the slice now or with its last process, because its pod or claim is gone.
  void release(LiveSlice&, const std::string& why);
  // Ends the slice if it has no live process and none can be added later.
  void end_if_empty(uint64_t id);
  // Ends the slice: its record, the arbiters' clients and its shared memory. Retries each second while the
  // record cannot be written.
  void end(uint64_t id, const std::string& why);

 private:
  using Ended = void (Ending::*)(LiveSlice&, const os::ProcessId&);
  void watch(LiveSlice&, Watched&, Ended);
  void report_moved_program(const LiveSlice&);
  void creator_ended(LiveSlice&, const os::ProcessId&);
  void root_ended(LiveSlice&, const os::ProcessId&);
  void supervisor_ended(LiveSlice&, const os::ProcessId&);
  void container_ended(LiveSlice&, const os::ProcessId&);

  NodeState& node_;
};

}  // namespace carve::node
