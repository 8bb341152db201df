// Processes that attach: their slots, and what the agent does with a slot when its process ends or executes
// another program.
#include <fcntl.h>

#include <algorithm>
#include <cstring>

#include "node/agent/agent.h"
#include "os/clock.h"
#include "os/log.h"
#include "wire/shm/shared_blocks.h"

namespace carve::node {
namespace {

using shm::AttachStatus;

shm::AttachReply reply(AttachStatus status, const std::string& sentence) {
  shm::AttachReply out{};
  out.magic = shm::attach_magic;
  out.layout = shm::layout_version;
  out.size = sizeof out;
  out.status = status;
  out.control_size = sizeof(shm::Control);
  out.report_size = sizeof(shm::Report);
  memcpy(out.sentence, sentence.data(), std::min(sentence.size(), sizeof out.sentence - 1));
  return out;
}

}  // namespace

shm::AttachReply Agent::attach(const os::Peer& peer, const shm::AttachRequest& request,
                               std::vector<os::Fd>& descriptors) {
  LiveSlice* slice = slice_of(peer.process.pid);
  if (slice == nullptr) return reply(AttachStatus::not_in_slice, "this process is in no slice");
  if (request.layout != shm::layout_version) {
    const std::string sentence = fmt::format(
        "the guest library has layout {} and the agent has layout {}; install both from one release",
        request.layout, shm::layout_version);
    event(slice->name(), fmt::format("process {} refused: {}", peer.process.pid, sentence));
    return reply(AttachStatus::wrong_layout, sentence);
  }
  if (!slice->report.page)
    return reply(
        AttachStatus::no_slot,
        fmt::format("slice {} lost its report page; stop the slice and start it again", slice->name()));

  shm::Control& control = *slice->control;
  unsigned slot = shm::max_processes;
  if (const auto known = slice->attached.find(peer.process); known != slice->attached.end()) {
    // The process attached before. It counts as another program only if it has no mapping of its report page
    // any more. The image number in the request alone is not accepted, because the
    // process could use it to drop its charges.
    slot = known->second.slot;
    if (control.processes[slot].image != request.image && !os::maps_file(peer.process.pid, report_name))
      if (!reclaim_slot(*slice, slot))
        return reply(AttachStatus::try_again, "the budget words changed too often; try again");
  } else {
    for (slot = 0; slot < shm::max_processes && control.processes[slot].pid != 0;) ++slot;
    if (slot == shm::max_processes)
      return reply(AttachStatus::no_slot,
                   fmt::format("slice {} has {} attached processes, which is the limit", slice->name(),
                               shm::max_processes));
  }
  descriptors.push_back(runtime_.control_descriptor(slice->name()));
  descriptors.emplace_back(fcntl(slice->report.fd.get(), F_DUPFD_CLOEXEC, 0));
  descriptors.push_back(runtime_.heartbeat_descriptor());
  os::Fd pidfd(fcntl(peer.pidfd.get(), F_DUPFD_CLOEXEC, 0));
  if (!pidfd || std::ranges::any_of(descriptors, [](const os::Fd& fd) { return !fd; })) {
    descriptors.clear();
    return reply(AttachStatus::try_again, "the agent has no free descriptor");
  }
  shm::ControlProcess& entry = control.processes[slot];
  const bool fresh = entry.pid == 0;
  if (fresh || entry.image != request.image) {
    entry.inner_pid = static_cast<uint32_t>(os::inner_pid_of(peer.process.pid));
    entry.start_time = peer.process.start;
    entry.image = request.image;
    ++entry.generation;
    std::atomic_ref(entry.pid).store(static_cast<uint32_t>(peer.process.pid), std::memory_order_release);
    control.epoch.fetch_add(1, std::memory_order_release);
  }
  if (fresh) memset(static_cast<void*>(&slice->report.page->work.process[slot]), 0, sizeof(shm::ProcessWork));
  if (fresh) add_attached(*slice, peer.process, slot, std::move(pidfd));
  os::log::debug("{}: process {} attached in slot {}", slice->name(), peer.process.pid, slot);
  shm::AttachReply granted = reply(AttachStatus::granted, "");
  granted.slot = slot;
  granted.generation = entry.generation;
  return granted;
}

void Agent::add_attached(LiveSlice& slice, const os::ProcessId& process, unsigned slot, os::Fd pidfd) {
  loop_.watch(pidfd.get(), EPOLLIN,
              [this, id = slice.record.id, process](uint32_t) { attached_ended(id, process); });
  slice.attached.emplace(process, AttachedProcess{slot, std::move(pidfd)});
  slice.identity.attached.insert(process);
  for_arbiters_of(slice, [&](Arbiter& a) { a.add_process(slice.record.id, slot); });
}

bool Agent::reclaim_slot(LiveSlice& slice, unsigned slot) {
  if (!slice.report.page) return true;
  const bool done = shm::reclaim(slice.report.page->charges, slot);
  // Shared blocks come after the lanes: a lane may say that it changed together with a block's.
  return shm::reclaim(slice.report.page->spill, slot) && done &&
         shm::leave_blocks(slice.report.page->charges, slot);
}

// The process has ended. The slot becomes free when all of its charges are released.
void Agent::attached_ended(uint64_t id, os::ProcessId process) {
  const auto living = slices_.find(id);
  if (living == slices_.end()) return;
  LiveSlice& slice = *living->second;
  const auto attached = slice.attached.find(process);
  if (attached == slice.attached.end()) return;
  loop_.forget(attached->second.pidfd.get());
  for_arbiters_of(slice, [&](Arbiter& a) { a.remove_process(slice.record.id, attached->second.slot); });
  if (!reclaim_slot(slice, attached->second.slot)) {
    loop_.after(os::millisecond, [this, id, process] { attached_ended(id, process); });
    return;
  }
  shm::ControlProcess& entry = slice.control->processes[attached->second.slot];
  std::atomic_ref(entry.pid).store(0, std::memory_order_release);
  slice.control->epoch.fetch_add(1, std::memory_order_release);
  slice.identity.attached.erase(process);
  slice.process_truth.erase(process.pid);
  slice.attached.erase(attached);
  end_if_empty(id);
}

// Releases the charges of a process that executed another program and did not attach again. Such a process
// has no mapping of its report page. A process that the driver still reports is left out.
void Agent::scan_execs(LiveSlice& slice) {
  for (const auto& [process, attached] : slice.attached) {
    if (slice.process_truth.contains(process.pid) || !slice.report.page) continue;
    bool holds = shm::holds_blocks(slice.report.page->charges, attached.slot);
    for (unsigned d = 0; d < slice.record.slice.parts.size(); ++d)
      for (unsigned lane = 0; lane < shm::lanes; ++lane)
        holds |= shm::holding(slice.report.page->charges, {d, attached.slot, lane}) != 0;
    if (holds && !os::maps_file(process.pid, report_name) && os::alive(attached.pidfd))
      reclaim_slot(slice, attached.slot);
  }
}

}  // namespace carve::node
