#include "node/life/attachments.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/invariant.h"
#include "os/clock.h"
#include "os/log.h"
#include "wire/shm/shared_blocks.h"

namespace carve::node {
namespace {

using shm::AttachStatus;

os::ProcessId process_in(const shm::ControlProcess& entry) {
  return {static_cast<pid_t>(entry.pid), entry.start_time};
}

}  // namespace

shm::AttachReply attach_reply(AttachStatus status, const std::string& message) {
  shm::AttachReply out{};
  out.magic = shm::attach_magic;
  out.layout = shm::layout_version;
  out.size = sizeof out;
  out.status = status;
  out.control_size = sizeof(shm::Control);
  out.report_size = sizeof(shm::Report);
  memcpy(out.message, message.data(), std::min(message.size(), sizeof out.message - 1));
  return out;
}

// The slot for a process, or the reason why it gets none.
struct Attachments::Slot {
  std::optional<unsigned> number;
  AttachStatus status = AttachStatus::granted;
  std::string message;
};

Attachments::Slot Attachments::choose_slot(LiveSlice& slice, const os::Peer& peer,
                                           const shm::AttachRequest& request) {
  shm::Control& control = *slice.control;
  if (const auto known = slice.attached.find(peer.process); known != slice.attached.end()) {
    // The process was already attached. It counts as another program only if it no longer maps its report
    // page. The image number in the request is not sufficient, because the process could use it to drop its
    // charges.
    const unsigned slot = known->second.slot;
    const auto other = std::exchange(known->second.other_image, std::nullopt);
    if (control.processes[slot].image != request.image && other && other->replaced && !reclaim(slice, slot))
      return {std::nullopt, AttachStatus::try_again,
              "the slice's memory counters changed too often; try again"};
    return {slot, AttachStatus::granted, ""};
  }
  for (unsigned slot = 0; slot < shm::max_processes; ++slot)
    if (control.processes[slot].pid == 0) return {slot, AttachStatus::granted, ""};
  return {std::nullopt, AttachStatus::no_slot,
          fmt::format("slice {} has {} attached processes, which is the limit", slice.name(),
                      shm::max_processes)};
}

void Attachments::fill_slot(LiveSlice& slice, const os::Peer& peer, const shm::AttachRequest& request,
                            unsigned slot, os::Fd pidfd) {
  shm::ControlProcess& entry = slice.control->processes[slot];
  const bool fresh = entry.pid == 0;
  if (fresh || entry.image != request.image) {
    entry.inner_pid = static_cast<uint32_t>(os::inner_pid_of(peer.process.pid));
    entry.start_time = peer.process.start;
    entry.image = request.image;
    ++entry.generation;
    std::atomic_ref(entry.pid).store(static_cast<uint32_t>(peer.process.pid), std::memory_order_release);
    slice.control->epoch.fetch_add(1, std::memory_order_release);
  }
  if (!fresh) return;
  memset(static_cast<void*>(&slice.report.page->work.process[slot]), 0, sizeof(shm::ProcessWork));
  add(slice, peer.process, slot, std::move(pidfd));
}

bool Attachments::knows_image(LiveSlice& slice, const os::Peer& peer, const shm::AttachRequest& request,
                              const std::function<void()>& again) {
  const auto known = slice.attached.find(peer.process);
  if (known == slice.attached.end()) return true;
  AttachedProcess& process = known->second;
  if (slice.control->processes[process.slot].image == request.image) return true;
  if (process.other_image && process.other_image->image == request.image && process.other_image->inspected)
    return true;
  process.other_image = {.image = request.image, .inspected = false, .replaced = false};
  node_.inspector->inspect(peer.process, slice.id(),
                           [this, id = slice.id(), image = request.image, again](const Inspection& seen) {
                             LiveSlice* const on = node_.slices.find(id);
                             if (on == nullptr) return;
                             const auto asked = on->attached.find(seen.process);
                             if (asked == on->attached.end() || !asked->second.other_image ||
                                 asked->second.other_image->image != image)
                               return;
                             asked->second.other_image = {
                                 .image = image, .inspected = true, .replaced = seen.maps_no_report_page};
                             again();
                           });
  return false;
}

std::optional<shm::AttachReply> Attachments::attach(const os::Peer& peer, const shm::AttachRequest& request,
                                                    std::vector<os::Fd>& descriptors,
                                                    const std::function<void()>& again) {
  LiveSlice* slice = node_.slices.slice_of(peer.process.pid);
  if (slice == nullptr) return attach_reply(AttachStatus::not_in_slice, "this process is in no slice");
  return attach(*slice, peer, request, descriptors, again);
}

std::optional<shm::AttachReply> Attachments::attach(LiveSlice& slice, const os::Peer& peer,
                                                    const shm::AttachRequest& request,
                                                    std::vector<os::Fd>& descriptors,
                                                    const std::function<void()>& again) {
  if (request.layout != shm::layout_version) {
    const std::string message = fmt::format(
        "the guest library has layout {}, but the agent has layout {}; install both from one release",
        request.layout, shm::layout_version);
    node_.caused_event(slice, fmt::format("process {} was refused: {}", peer.process.pid, message));
    return attach_reply(AttachStatus::wrong_layout, message);
  }
  if (!slice.report.page)
    return attach_reply(
        AttachStatus::no_slot,
        fmt::format("slice {} lost its report page; stop the slice and start it again", slice.name()));
  if (!knows_image(slice, peer, request, again)) return std::nullopt;
  free_slots_of_ended(slice);
  const Slot slot = choose_slot(slice, peer, request);
  if (!slot.number) return attach_reply(slot.status, slot.message);
  os::Fd pidfd(fcntl(peer.pidfd.get(), F_DUPFD_CLOEXEC, 0));
  if (pidfd) descriptors = node_.pages.descriptors_for(slice);
  if (descriptors.empty()) return attach_reply(AttachStatus::try_again, "the agent has no free descriptor");

  fill_slot(slice, peer, request, *slot.number, std::move(pidfd));
  os::log::debug("{}: process {} attached in slot {}", slice.name(), peer.process.pid, *slot.number);
  shm::AttachReply granted = attach_reply(AttachStatus::granted, "");
  granted.slot = *slot.number;
  granted.generation = slice.control->processes[*slot.number].generation;
  return granted;
}

void Attachments::add(LiveSlice& slice, const os::ProcessId& process, unsigned slot, os::Fd pidfd) {
  invariant(slot < shm::max_processes, "a slot of the control page");
  node_.loop.watch(pidfd.get(), EPOLLIN, [this, id = slice.id(), process](uint32_t) { ended(id, process); });
  slice.attached.emplace(process,
                         AttachedProcess{.slot = slot, .pidfd = std::move(pidfd), .other_image = {}});
  slice.identity.attached.insert(process);
  node_.compute.add_process(slice.id(), slice.granted(), slot);
}

void Attachments::adopt(LiveSlice& slice) {
  for (unsigned slot = 0; slot < shm::max_processes; ++slot) {
    const shm::ControlProcess& entry = slice.control->processes[slot];
    if (entry.pid == 0) continue;
    if (os::Fd pidfd = os::open_process(process_in(entry)))
      add(slice, process_in(entry), slot, std::move(pidfd));
  }
}

void Attachments::reclaim_ended(LiveSlice& slice) {
  for (unsigned slot = 0; slot < shm::max_processes; ++slot) {
    shm::ControlProcess& entry = slice.control->processes[slot];
    if (entry.pid == 0 || slice.attached.contains(process_in(entry))) continue;
    if (reclaim(slice, slot)) std::atomic_ref(entry.pid).store(0, std::memory_order_release);
  }
  // The previous agent may have been killed while it released a block.
  if (slice.report.page) shm::leave_blocks(slice.report.page->charges, shm::Tag::agent);
}

bool Attachments::reclaim(LiveSlice& slice, unsigned slot) {
  if (!slice.report.page) return true;
  slice.raise_peaks();
  const bool done = shm::reclaim(slice.report.page->charges, slot);
  // Shared blocks are released after the lanes, because a lane may record that it changed together with a
  // block's.
  return shm::reclaim(slice.report.page->spill, slot) && done &&
         shm::leave_blocks(slice.report.page->charges, slot);
}

void Attachments::ended(uint64_t id, os::ProcessId process) {
  LiveSlice* const slice = node_.slices.find(id);
  if (slice != nullptr && free_slot(*slice, process)) process_ended_(id);
}

// The slice must not end here, because the caller still uses it.
void Attachments::free_slots_of_ended(LiveSlice& slice) {
  std::vector<os::ProcessId> processes;
  for (const auto& [process, attached] : slice.attached)
    if (!os::alive(attached.pidfd)) processes.push_back(process);
  for (const os::ProcessId& process : processes)
    if (free_slot(slice, process)) node_.loop.after(0, [this, id = slice.id()] { process_ended_(id); });
}

bool Attachments::free_slot(LiveSlice& slice, const os::ProcessId& process) {
  const auto attached = slice.attached.find(process);
  if (attached == slice.attached.end()) return false;
  const unsigned slot = attached->second.slot;
  node_.loop.forget(attached->second.pidfd.get());
  node_.compute.remove_process(slice.id(), slice.granted(), slot);
  if (!reclaim(slice, slot)) {
    node_.loop.after(os::millisecond, [this, id = slice.id(), process] { ended(id, process); });
    return false;
  }
  std::atomic_ref(slice.control->processes[slot].pid).store(0, std::memory_order_release);
  slice.control->epoch.fetch_add(1, std::memory_order_release);
  slice.identity.attached.erase(process);
  slice.used_by_pid.erase(process.pid);
  node_.ended_processes.add({process.pid, slice.id(), slice.name(), attached_span(process)});
  slice.attached.erase(attached);
  return true;
}

bool Attachments::holds_charges(const LiveSlice& slice, unsigned slot) {
  if (shm::holds_blocks(slice.report.page->charges, slot)) return true;
  for (unsigned d = 0; d < slice.granted().parts.size(); ++d)
    for (unsigned lane = 0; lane < shm::lanes; ++lane)
      if (shm::holding(slice.report.page->charges, {d, slot, lane}) != 0) return true;
  return false;
}

void Attachments::reclaim_after_exec(LiveSlice& slice) {
  if (!slice.report.page) return;
  for (auto& [process, attached] : slice.attached) {
    if (slice.used_by_pid.contains(process.pid) || attached.is_inspected ||
        !holds_charges(slice, attached.slot))
      continue;
    attached.is_inspected = true;
    const uint32_t generation = slice.control->processes[attached.slot].generation;
    node_.inspector->inspect(process, slice.id(),
                             [this, id = slice.id(), generation](const Inspection& seen) {
                               LiveSlice* const on = node_.slices.find(id);
                               if (on == nullptr) return;
                               const auto still = on->attached.find(seen.process);
                               if (still == on->attached.end()) return;
                               AttachedProcess& inspected = still->second;
                               inspected.is_inspected = false;
                               // The process may have attached again or used the device since then. A process
                               // that is being killed still holds its memory for a while after its mappings
                               // are gone.
                               if (on->control->processes[inspected.slot].generation == generation &&
                                   on->report.page && !on->used_by_pid.contains(seen.process.pid) &&
                                   seen.maps_no_report_page && os::alive(inspected.pidfd))
                                 reclaim(*on, inspected.slot);
                             });
  }
}

}  // namespace carve::node
