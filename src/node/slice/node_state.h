// The state of one agent, shared by its parts: Lifecycle, Attachments, the reconcile loop and the views. Used
// only by the loop's thread. Rules are in the parts that apply them; this file contains only state and
// look-ups.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/event_budget.h"
#include "node/agent/event_log.h"
#include "node/compute/compute.h"
#include "node/devices/kernel_log.h"
#include "node/guard/slice_guard.h"
#include "node/identity/cgroup.h"
#include "node/identity/ended_processes.h"
#include "node/inspect/inspector.h"
#include "node/limits/kept_limits.h"
#include "node/settings/kept_settings.h"
#include "node/settings/node_labels.h"
#include "node/settings/settings.h"
#include "node/slice/attach_listeners.h"
#include "node/slice/books.h"
#include "node/slice/pages.h"
#include "node/slice/slices.h"
#include "os/loop.h"

namespace carve::node {

// The slice that an event is about. The name is empty if the event is about the agent.
struct EventSubject {
  std::string name;
  uint64_t id = 0;                     // Id of its usage record; 0 if unknown.
  std::optional<uint32_t> owner = {};  // The owner's uid. If unknown, only operators see the event.
};

struct NodeState {
  os::Loop& loop;
  const Settings settings;
  std::vector<NodeDevice> devices;
  std::vector<unsigned> lost_indexes = {};  // Devices that the driver reported as lost at the start.
  Books books;
  EventLog events;
  NodeLabels labels;
  KeptSettings kept_settings;
  KeptLimits limits;
  Pages pages;
  Slices slices;
  std::unique_ptr<Inspector> inspector;  // Never null.
  AttachListeners attach_listeners = {};
  std::unique_ptr<SliceGuard> guard;       // Never null.
  std::optional<CgroupTree> cgroups = {};  // Where slices' cgroups are.
  Compute compute;                         // Destroyed before the slices, whose pages the arbiters use.

  std::optional<KernelLog> kernel_log;
  std::string kernel_log_trouble;          // Why the kernel log cannot be read; empty if it can.
  std::string process_lists_trouble = {};  // Why nvidia-smi in a slice shows others' processes, or empty.
  EndedProcesses ended_processes;
  EventBudget outside_budget = {};  // For outside_event().

  uint64_t samples = 0;        // Number of samples taken from the driver.
  int64_t last_sample_ns = 0;  // CLOCK_MONOTONIC end of the last sample; 0 if there was none.
  int64_t sample_took_ns = 0;  // Duration of the last sample.

  const ledger::Ledger& ledger() const { return books.ledger(); }
  const NodeDevice* device(const Uuid&) const;
  Bytes context_charged(
      const Uuid&) const;  // The charge for a context on the device; 0 if the reserve covers it.
  // Logs the event and adds it to the event log. `slice` is the slice's name, or empty for the agent as a
  // whole. The log line counts against the quota of the slice's owner.
  void event(const std::string& slice, std::string text);
  // The same for an event that a process of the slice can cause as often as it wants. Only a limited number
  // is kept. Returns whether this event is kept.
  bool caused_event(LiveSlice& slice, std::string text);
  // The same for events about programs that are in no live slice. `slice` is the slice in which they were, if
  // known.
  void outside_event(const EventSubject& slice, std::string text);
  // Returns the owner of a live or ended slice, if known.
  std::optional<uint32_t> owner_of(const std::string& slice) const;
  uint64_t id_of(const std::string& slice) const;  // Returns 0 if no live slice has this name.
  void add_event(const EventSubject& slice, std::string text, const std::optional<Cause>& cause);
  Policies::Holders policy_holders() const;
  std::vector<std::string> memory_unit_holders() const;  // Slices that were requested in units.
  Share most_shares() const;                             // The largest sum of the shares on one device.
};

// Returns the span of a process that has been attached until now.
AttachedSpan attached_span(const os::ProcessId&);

// Makes the arbiters of the slice's devices schedule the current slices. Must be called after a slice was
// granted or adopted, after its share, policy or class changed, and after it ended.
void arbitrate(NodeState&, const Slice&);

}  // namespace carve::node
