#include "node/api/views.h"

#include <algorithm>

#include "core/commitment.h"
#include "node/api/shown_time.h"
#include "os/clock.h"
#include "os/process.h"

namespace carve::node {

const std::vector<DeviceView>& ViewContext::devices() const {
  if (!devices_) devices_ = agent_.devices();
  return *devices_;
}

const std::vector<SliceView>& ViewContext::living() const {
  if (!living_) living_ = agent_.slices({});
  return *living_;
}

const DeviceView* ViewContext::device(const Uuid& uuid) const {
  const auto found = std::ranges::find(devices(), uuid, [](const DeviceView& d) { return d.device.uuid; });
  return found == devices().end() ? nullptr : &*found;
}

const std::vector<const SliceView*>& ViewContext::living_on(const DeviceView& device) const {
  const auto [known, is_new] = living_on_.try_emplace(device.device.uuid);
  if (!is_new) return known->second;
  for (const SliceView& slice : living())
    if (std::ranges::find(device.slices, slice.record.id) != device.slices.end())
      known->second.push_back(&slice);
  return known->second;
}

namespace {

constexpr const char* hidden_name = "another user's slice";

}  // namespace

std::string ViewContext::name_of(const SliceView& slice) const {
  return may_see(slice.record.slice.owner) ? slice.name() : hidden_name;
}

namespace {

// Appends the names that are missing.
void add_names(std::vector<std::string>& names, const std::vector<std::string>& more) {
  for (const std::string& name : more)
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
}

api::PolicySetting policy_of(const ViewContext& look, const DeviceView& device) {
  const Setting<Policy>& setting = device.policy;
  api::PolicySetting out{setting.desired, setting.effective, {}};
  for (const SliceView* slice : look.living_on(device))
    if (setting.pending()) add_names(out.blocked_by, {look.name_of(*slice)});
  return out;
}

// Returns the figures of a slice on an arbitrated device, or null if the arbiter does not schedule it.
const SliceCompute* compute_of(const DeviceView& device, SliceId slice) {
  if (!device.compute) return nullptr;
  const auto found = std::ranges::find(device.compute->slices, slice, &SliceCompute::slice);
  return found == device.compute->slices.end() ? nullptr : &*found;
}

// Returns how shares are enforced on a device; no value if no slice on it has an enforced share. If the
// arbiter does not schedule some slice, that slice may use the whole device, so no share is guaranteed.
std::optional<Enforcement> compute_enforcement_on(const ViewContext& look, const DeviceView& device) {
  bool shared_out = false;
  std::vector<std::string> not_arbitrated;
  for (const SliceView* slice : look.living_on(device)) {
    shared_out |= slice->record.slice.shares_compute();
    if (compute_of(device, slice->record.id) == nullptr) add_names(not_arbitrated, {look.name_of(*slice)});
  }
  if (!shared_out) return std::nullopt;
  if (!not_arbitrated.empty())
    return Enforcement{EnforcementLevel::none, "slices without a share also use the device", not_arbitrated};
  if (!device.compute->arbitrated)
    return Enforcement{EnforcementLevel::none, "the device is not arbitrated", {}};
  return Enforcement{enforced_by_guest, "", {}};
}

// Returns why a slice without a share is limited: it is a best-effort slice on a device where other slices
// have shares.
Enforcement best_effort_of(const ViewContext& look, const Slice& slice) {
  Enforcement out;
  for (const SlicePart& part : slice.parts) {
    const DeviceView* device = look.device(part.device);
    if (device == nullptr) continue;
    for (const SliceView* other : look.living_on(*device))
      if (other->record.slice.shares_compute()) add_names(out.by, {look.name_of(*other)});
  }
  if (!out.by.empty())
    out.reason = slice.policy == Policy::native_burst_share
                     ? "no share: it gets the mean weight of the slices that have one"
                     : "best effort: it runs when slices with a share are idle";
  return out;
}

// Returns the enforcement of a slice's share, which is that of the device with the lowest level.
Enforcement compute_enforcement_of(const ViewContext& look, const Slice& slice) {
  if (!slice.shares_compute()) return best_effort_of(look, slice);
  std::optional<Enforcement> weakest;
  for (const SlicePart& part : slice.parts) {
    const DeviceView* device = look.device(part.device);
    if (device == nullptr) continue;
    if (const auto on = compute_enforcement_on(look, *device); on && (!weakest || on->level < weakest->level))
      weakest = on;
  }
  return weakest.value_or(Enforcement{});
}

uint64_t shown(const ledger::Stamp& at) {
  return static_cast<uint64_t>(shown_utc_ns(at, {os::utc_ns(), os::boot_id(), os::monotonic_ns()}));
}

// Returns the periods, oldest first. Each begins at the end of the previous one.
std::vector<api::Period> history_of(const ledger::UsageRecord& record) {
  std::vector<api::Period> out;
  auto from = shown(record.from);
  const auto add = [&](const ledger::Terms& t, uint64_t to) {
    out.push_back({from, to, t.memory.count, t.share.basis_points, t.policy, t.latency, t.isolation});
    from = to;
  };
  for (const ledger::Period& p : record.periods) add(p.terms, shown(p.to));
  add(ledger::terms_of(record.slice), record.to ? shown(*record.to) : 0);
  return out;
}

// Returns the neighbours that held the device while the slice waited. Those that the caller may not see become
// one entry.
std::vector<api::WaitFor> waits_of(const ViewContext& look, const SliceCompute& compute) {
  std::vector<api::WaitFor> out;
  uint64_t hidden_ns = 0;
  for (const WaitFor& wait : compute.waits_60s)
    if (look.may_see(wait.owner))
      out.push_back({wait.name, wait.waiting_ns});
    else
      hidden_ns += wait.waiting_ns;
  if (hidden_ns != 0) out.push_back({hidden_name, hidden_ns});
  std::ranges::stable_sort(out, std::ranges::greater(), &api::WaitFor::waiting_ns);
  return out;
}

api::SlicePart view_part(const DeviceView* on, const SlicePart& granted) {
  api::SlicePart out;
  out.index = on != nullptr ? on->device.index : 0;
  out.device_name = !granted.model.empty() ? granted.model : on != nullptr ? on->device.name : "unknown";
  out.native_bytes = granted.native.count;
  out.uuid = text(granted.device);
  out.quota_bytes = granted.memory.count;
  out.usable_bytes = granted.usable.count;
  out.share_bp = granted.share.basis_points;
  out.spill_bytes = granted.spill.count;
  return out;
}

// Returns the granted amounts of a live or an ended slice.
api::Slice view_granted(const ViewContext& look, const ledger::UsageRecord& record) {
  const Slice& granted = record.slice;
  api::Slice out;
  out.name = granted.name;
  out.owner_uid = granted.owner;
  out.account = granted.account;
  out.labels = granted.labels;
  out.memory_units = granted.memory_units;
  out.lifetime = granted.lifetime;
  out.exclusive = granted.exclusive;
  out.application = granted.application;
  if (granted.holder) out.holder = granted.holder;
  out.isolation = granted.isolation;
  if (granted.isolation != Isolation::none) out.enforcement.memory.level = enforced_by_guest;
  out.policy = granted.policy;
  out.latency_class = granted.latency;
  out.created_ns = shown(record.from);
  for (const SlicePart& part : granted.parts) out.parts.push_back(view_part(look.device(part.device), part));
  return out;
}

}  // namespace

api::Event view(const Event& event) {
  return {.time_ns = static_cast<uint64_t>(event.utc_ns),
          .slice = event.slice,
          .slice_id = event.slice_id,
          .text = event.text,
          .caller = event.caller};
}

api::Slice view(const ViewContext& look, const SliceView& slice, bool whole) {
  api::Slice out = view_granted(look, slice.record);
  out.state = slice.state;
  out.command = slice.command;
  if (slice.slot) out.slot = text(*slice.slot);
  out.pods = slice.pods;
  out.unknown_pods = slice.unknown_pods;
  out.ended_because = slice.why;
  out.xids = slice.xids;
  out.violations = slice.violations;
  out.refused_ns = static_cast<uint64_t>(slice.refused_utc_ns);
  out.idle_seconds = static_cast<uint64_t>(slice.idle_ns / os::second);
  if (slice.record.to) out.ended_ns = shown(*slice.record.to);
  // The record has one peak for all parts, and outlives the parts' figures.
  if (slice.state == SliceState::ended)
    for (api::SlicePart& part : out.parts) part.peak_bytes = slice.record.peak_bytes;
  if (slice.state != SliceState::ended && slice.record.slice.isolation != Isolation::none)
    out.enforcement.memory = slice.memory;
  if (slice.state != SliceState::ended)
    out.enforcement.compute = compute_enforcement_of(look, slice.record.slice);
  for (size_t d = 0; d < slice.parts.size(); ++d) {
    api::SlicePart& part = out.parts[d];
    part.charged_bytes = slice.parts[d].charged.count;
    part.spilled_bytes = slice.parts[d].spilled.count;
    part.used_bytes = slice.parts[d].used.count;
    part.peak_bytes = slice.parts[d].peak.count;
    part.utilization_percent = slice.parts[d].utilization_percent;
    const DeviceView* const on = look.device(slice.record.slice.parts[d].device);
    if (on == nullptr) continue;
    if (on->readings.energy_millijoules) part.energy_millijoules = slice.parts[d].energy_microjoules / 1000;
    if (const SliceCompute* compute = compute_of(*on, slice.record.id)) {
      part.compute = compute->figures;
      part.compute->waits_60s = waits_of(look, *compute);
    }
  }
  if (!whole) return out;
  out.history = history_of(slice.record);
  for (const Event& e : look.agent().events())
    if (e.slice_id == slice.record.id) out.events.push_back(view(e));
  for (const ProcessView& p : slice.processes)
    out.processes.push_back({static_cast<uint32_t>(p.pid), static_cast<uint32_t>(p.inner_pid), p.command,
                             p.attached, p.used.count});
  return out;
}

api::Node view_node(const ViewContext& look) {
  const NodeView node = look.agent().node();
  api::Node out;
  out.policy.desired = node.policy;
  for (const DeviceView& d : look.devices()) {
    const api::PolicySetting on = policy_of(look, d);
    if (&d == &look.devices().front()) out.policy.effective = on.effective;
    if (out.policy.effective != on.effective) out.policy.effective.reset();
    add_names(out.policy.blocked_by, on.blocked_by);
  }
  out.policy_per_slice = node.policy_per_slice;
  out.admit_best_effort = node.admit_best_effort;
  out.overcommit_compute = node.overcommit_compute;
  out.contexts_in_slice = node.contexts_in_slice;
  out.memory_unit = node.memory_unit.effective;
  out.desired_memory_unit = node.memory_unit.desired;
  out.memory_unit_blocked_by = node.memory_unit.blocked_by;
  out.bookkeeper = node.bookkeeper;
  out.grants_refused = node.grants_refused;
  out.starting = node.starting;
  out.spill_limit_bytes = node.spill_limit.count;
  out.spill_granted_bytes = node.spill_granted.count;
  out.spill_free_bytes = node.spill_limit.count - std::min(node.spill_limit.count, node.spill_granted.count);
  out.labels = node.labels;
  out.enforcement = node.guard.memory;
  return out;
}

api::Device view(const ViewContext& look, const DeviceView& d) {
  api::Device out;
  out.index = d.device.index;
  out.uuid = text(d.device.uuid);
  out.name = d.device.name;
  out.simulated = !look.agent().node().simulated.empty();
  out.migrates = d.device.migrates;
  out.health = d.health;
  out.xids = d.xids;
  out.last_xid = d.last_xid;
  out.native_bytes = d.device.native.count;
  out.reserved_bytes = d.device.reserved.count;
  out.usable_bytes = d.device.usable().count;
  out.used_bytes = d.used.count;
  out.used_in_slices_bytes = d.used_in_slices.count;
  out.used_outside_slices_bytes = d.used_outside_slices.count;
  out.context_bytes = d.context.count;
  out.utilization_percent = d.utilization_percent;
  out.pci_id = d.pci_id;
  out.readings = d.readings;
  out.mode = d.mode;
  out.max_slices = max_isolated_slices;
  out.policy = policy_of(look, d);
  out.compute = compute_enforcement_on(look, d);
  uint64_t switch_ns = assumed_switch_ns;
  if (d.compute) {
    if (d.compute->figures.switch_ns != 0) switch_ns = d.compute->figures.switch_ns;
    if (d.compute->arbitrated) out.arbitration = d.compute->figures;
  }
  out.unmanaged_processes = d.unmanaged_processes;
  out.free_bytes = d.free.count;
  out.slices = static_cast<uint32_t>(d.slices.size());
  uint64_t promised_bp = 0;
  for (const SliceView* slice : look.living_on(d)) {
    const Slice& granted = slice->record.slice;
    const auto part = std::ranges::find(granted.parts, d.device.uuid, &SlicePart::device);
    if (part == granted.parts.end()) continue;
    out.granted_bytes += part->memory.count;
    out.share_granted_bp += part->share.basis_points;
    if (granted.shares_compute()) promised_bp += promised_share(granted.policy, part->share).basis_points;
    if (granted.exclusive) out.exclusive_to = look.name_of(*slice);
  }
  out.commitment = commitment(promised_bp, switch_ns);
  return out;
}

NodeFigures figures(const ViewContext& look) {
  const NodeView node = look.agent().node();
  NodeFigures out{.version = CARVE_VERSION,
                  .simulated = node.simulated,
                  .host_name = node.host_name,
                  .dcgm_names = node.dcgm_names,
                  .phase = node.starting                 ? NodePhase::starting
                           : node.grants_refused.empty() ? NodePhase::running
                                                         : NodePhase::stopped,
                  .pending = {{"memory_unit", node.memory_unit.pending()}, {"policy", false}},
                  .samples = node.samples,
                  .sample_took_ns = static_cast<uint64_t>(node.sample_took_ns),
                  .longest_turn_ns = static_cast<uint64_t>(node.longest_turn_ns),
                  .memory_enforcement = node.guard.memory.level,
                  .devices = {},
                  .slices = {}};
  for (const DeviceView& d : look.devices()) {
    out.devices.push_back(view(look, d));
    out.pending["policy"] |= d.policy.pending();
  }
  for (const SliceView& slice : look.living())
    if (look.may_see(slice.record.slice.owner)) out.slices.push_back(view(look, slice, false));
  return out;
}

}  // namespace carve::node
