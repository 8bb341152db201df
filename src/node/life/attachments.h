// Handles attaching processes: their slots in the slice's shared memory, and what happens to a slot when its
// process ends or executes another program.
#pragma once

#include <functional>
#include <set>

#include "node/slice/node_state.h"
#include "os/socket.h"
#include "wire/shm/attach.h"

namespace carve::node {

// Returns an answer without descriptors.
shm::AttachReply attach_reply(shm::AttachStatus, const std::string& message);

class Attachments {
 public:
  // `process_ended` is called with the slice's id when an attached process has ended and its slot is free.
  Attachments(NodeState& node, std::function<void(uint64_t)> process_ended)
      : node_(node), process_ended_(std::move(process_ended)) {}

  // Answers a process that attaches. The order of the descriptors is that of wire/shm/attach.h. Returns no
  // value if the process must be inspected first; `again` is called after the inspection.
  std::optional<shm::AttachReply> attach(const os::Peer&, const shm::AttachRequest&,
                                         std::vector<os::Fd>& descriptors,
                                         const std::function<void()>& again);
  // The same for a process that is known to be in this slice.
  std::optional<shm::AttachReply> attach(LiveSlice&, const os::Peer&, const shm::AttachRequest&,
                                         std::vector<os::Fd>& descriptors,
                                         const std::function<void()>& again);

  // Watches a process that has a slot.
  void add(LiveSlice&, const os::ProcessId&, unsigned slot, os::Fd pidfd);

  // Watches the processes of an adopted slice that are still alive. Frees the slots of the others with
  // reclaim_ended().
  void adopt(LiveSlice&);
  void reclaim_ended(LiveSlice&);

  // Releases the charges of processes that executed another program and did not attach again. Such a process
  // no longer maps its report page, as an inspection shows. Skips processes that the driver still reports.
  void reclaim_after_exec(LiveSlice&);

 private:
  void ended(uint64_t slice, os::ProcessId);
  // Frees the slots of processes that ended before an attach request, so that the next process finds their
  // slots and memory free. The loop may handle the request before it notices the ends.
  void free_slots_of_ended(LiveSlice&);
  // Releases the charges of an ended process and then its slot. Returns false if the process has no slot, or
  // if its charges cannot be released yet; in that case it tries again later.
  bool free_slot(LiveSlice&, const os::ProcessId&);
  // Releases the charges of a slot. Returns false if the budget words changed too often; the caller should
  // try again.
  static bool reclaim(LiveSlice&, unsigned slot);
  struct Slot;
  static Slot choose_slot(LiveSlice&, const os::Peer&, const shm::AttachRequest&);
  // Returns whether it is known if the image in the request has replaced the process's program. If not,
  // starts an inspection.
  bool knows_image(LiveSlice&, const os::Peer&, const shm::AttachRequest&,
                   const std::function<void()>& again);
  static bool holds_charges(const LiveSlice&, unsigned slot);
  void fill_slot(LiveSlice&, const os::Peer&, const shm::AttachRequest&, unsigned slot, os::Fd pidfd);

  NodeState& node_;
  std::function<void(uint64_t)> process_ended_;
};

}  // namespace carve::node
