// The state of one agent, which its parts share: Lifecycle, Attachments, the reconcile loop, the views. The
// loop's thread alone uses it. A rule is in the part that keeps it; here are only the state and look-ups.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "node/agent/event_log.h"
#include "node/compute/compute.h"
#include "node/devices/kernel_log.h"
#include "node/inspect/inspector.h"
#include "node/slice/books.h"
#include "node/slice/ended_processes.h"
#include "node/slice/kept_settings.h"
#include "node/slice/node_labels.h"
#include "node/slice/pages.h"
#include "node/slice/settings.h"
#include "node/slice/slices.h"
#include "node/slice/slot_listeners.h"
#include "os/loop.h"

namespace carve::node {

struct NodeState {
  os::Loop& loop;
  const Settings settings;
  std::vector<NodeDevice> devices;
  std::vector<unsigned> lost_indexes = {};  // Of devices that the driver reported as lost at the start.
  Books books;
  EventLog events;
  NodeLabels labels;
  KeptSettings kept_settings;
  Pages pages;
  Slices slices;
  std::unique_ptr<Inspector> inspector;  // Never null.
  SlotListeners slot_listeners = {};
  Compute compute;  // Destroyed before the slices, whose pages the arbiters use.

  std::optional<KernelLog> kernel_log;
  std::string kernel_log_trouble;  // Why there is none.
  EndedProcesses ended_processes;

  uint64_t samples = 0;        // Taken from the driver.
  int64_t last_sample_ns = 0;  // CLOCK_MONOTONIC of its end; 0: none.
  int64_t sample_took_ns = 0;  // The last one.

  const ledger::Ledger& ledger() const { return books.ledger(); }
  const NodeDevice* device(const Uuid&) const;
  Bytes context_charged(const Uuid&) const;  // What a context costs a slice there; 0: the reserve pays.
  // Logs the event and adds it to the event log. `slice`: its name; empty: the agent as a whole.
  void event(const std::string& slice, std::string text);
  // The same for an event that a process of the slice causes as often as it wants: only so many are kept.
  // Returns whether this one is.
  bool caused_event(LiveSlice& slice, std::string text);
  Policies::Holders policy_holders() const;
  std::vector<std::string> memory_unit_holders() const;  // Slices that were requested in units.
  Share most_shares() const;                             // The largest sum of the shares on one device.
};

// Returns the span of a process that is attached until now.
AttachedSpan attached_span(const os::ProcessId&);

// Makes each device's arbiter schedule the slices that live there now. Call it after a slice was granted or
// adopted, after its share, policy or class changed, and after it ended.
void arbitrate(NodeState&, const Slice&);

}  // namespace carve::node
