#include "node/api/views.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "core/commitment.h"
#include "os/clock.h"

namespace carve::node {
namespace {

std::vector<const ledger::UsageRecord*> living_on(const Agent& agent, const Uuid& device) {
  std::vector<const ledger::UsageRecord*> out;
  const auto balance = agent.ledger().balances().find(device);
  if (balance == agent.ledger().balances().end()) return out;
  for (const auto& [id, part] : balance->second.held) out.push_back(&agent.ledger().living().at(id));
  return out;
}

// Appends the names that are not there yet.
void add_names(std::vector<std::string>& names, const std::vector<std::string>& more) {
  for (const std::string& name : more)
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
}

api::PolicySetting view(const ViewContext& look, const Uuid& device, const Setting<Policy>& setting) {
  api::PolicySetting out{setting.desired, setting.effective, {}};
  for (const ledger::UsageRecord* record : living_on(look.agent(), device))
    if (setting.pending()) add_names(out.blocked_by, {look.name_of(*record)});
  return out;
}

// Returns how shares are enforced on a device; no value if no slice on it has an enforced share. A slice that
// the arbiter does not schedule may use all of the device, so no share is then guaranteed.
std::optional<Enforcement> compute_enforcement_on(const ViewContext& look, const Uuid& device) {
  const auto& compute = look.compute(device);
  bool shared_out = false;
  std::vector<std::string> not_arbitrated;
  for (const ledger::UsageRecord* record : living_on(look.agent(), device)) {
    shared_out |= record->slice.shares_compute();
    if (!compute ||
        std::ranges::find(compute->slices, record->id, &SliceCompute::slice) == compute->slices.end())
      add_names(not_arbitrated, {look.name_of(*record)});
  }
  if (!shared_out) return std::nullopt;
  if (!not_arbitrated.empty())
    return Enforcement{EnforcementLevel::none, "slices without a share use the device", not_arbitrated};
  if (!compute->arbitrated) return Enforcement{EnforcementLevel::none, "the device is not arbitrated", {}};
  return Enforcement{enforced_by_guest, "", {}};
}

// Returns the enforcement of a slice's share: that of its weakest device.
Enforcement compute_enforcement_of(const ViewContext& look, const Slice& slice) {
  std::optional<Enforcement> weakest;
  for (const SlicePart& part : slice.parts)
    if (const auto on = compute_enforcement_on(look, part.device); on && slice.shares_compute())
      if (!weakest || on->level < weakest->level) weakest = on;
  return weakest.value_or(Enforcement{});
}

std::optional<api::PartCompute> compute_of(const ViewContext& look, const ledger::UsageRecord& record,
                                           const Uuid& device) {
  const auto& compute = look.compute(device);
  if (!compute) return std::nullopt;
  const auto found = std::ranges::find(compute->slices, record.id, &SliceCompute::slice);
  if (found == compute->slices.end()) return std::nullopt;
  return found->figures;
}

// Returns the periods, oldest first. Each begins at the end of the previous one.
std::vector<api::Period> history_of(const ledger::UsageRecord& record) {
  std::vector<api::Period> out;
  auto from = static_cast<uint64_t>(record.from.utc_ns);
  const auto add = [&](const ledger::Terms& t, uint64_t to) {
    out.push_back({from, to, t.memory.count, t.share.basis_points, t.policy, t.latency, t.isolation});
    from = to;
  };
  for (const ledger::Period& p : record.periods) add(p.terms, static_cast<uint64_t>(p.to.utc_ns));
  add(ledger::terms_of(record.slice), record.to ? static_cast<uint64_t>(record.to->utc_ns) : 0);
  return out;
}

api::Slice of_record(const Agent& agent, const ledger::UsageRecord& record, bool whole) {
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
  out.isolation = granted.isolation;
  if (granted.isolation != Isolation::none) out.enforcement.memory.level = enforced_by_guest;
  out.policy = granted.policy;
  out.latency_class = granted.latency;
  out.created_ns = static_cast<uint64_t>(record.from.utc_ns);
  for (const SlicePart& part : granted.parts) {
    api::SlicePart shown;
    if (const NodeDevice* on = agent.device(part.device)) {
      shown.index = on->device.index;
      shown.device_name = on->device.name;
    } else {
      shown.device_name = "not on this node now";
    }
    shown.uuid = text(part.device);
    shown.quota_bytes = part.memory.count;
    shown.usable_bytes = part.usable.count;
    shown.share_bp = part.share.basis_points;
    shown.spill_bytes = part.spill.count;
    out.parts.push_back(shown);
  }
  if (whole) out.history = history_of(record);
  if (whole)
    for (const Event& e : agent.events())
      if (e.slice == granted.name) out.events.push_back({static_cast<uint64_t>(e.utc_ns), e.slice, e.text});
  return out;
}

std::vector<api::Process> processes_of(const LiveSlice& slice) {
  std::set<pid_t> pids;
  std::set<pid_t> attached;
  for (const auto& [id, process] : slice.attached) attached.insert(id.pid);
  pids = attached;
  if (slice.cgroup)
    for (const int pid : slice.cgroup->pids()) pids.insert(pid);
  for (const auto& [id, pidfd] : slice.descendants)
    if (os::alive(pidfd)) pids.insert(id.pid);
  if (slice.root.pidfd && os::alive(slice.root.pidfd)) pids.insert(slice.root.id.pid);
  for (const Watched& container : slice.containers) pids.insert(container.id.pid);
  std::vector<api::Process> out;
  for (const pid_t pid : pids) {
    const auto truth = slice.process_truth.find(pid);
    out.push_back({static_cast<uint32_t>(pid), static_cast<uint32_t>(os::inner_pid_of(pid)),
                   os::command_of(pid), attached.contains(pid),
                   truth == slice.process_truth.end() ? 0 : truth->second.count});
  }
  return out;
}

SliceState state_of(const LiveSlice& slice) {
  if (slice.stopping) return SliceState::stopping;
  if (slice.frozen) return SliceState::frozen;
  if (slice.outlives_processes())
    return slice.containers.empty() && slice.attached.empty() ? SliceState::granted : SliceState::running;
  if (!slice.entered) return SliceState::granted;
  return slice.root.pidfd && os::alive(slice.root.pidfd) ? SliceState::running : SliceState::lingering;
}

}  // namespace

api::Node view_node(const ViewContext& look) {
  const Agent& agent = look.agent();
  const Settings& settings = agent.settings();
  api::Node out;
  out.policy.desired = agent.policies().desired();
  for (const NodeDevice& d : agent.devices()) {
    const api::PolicySetting on = view(look, d.device.uuid, agent.policies().of(d.device.uuid));
    if (&d == &agent.devices().front()) out.policy.effective = on.effective;
    if (out.policy.effective != on.effective) out.policy.effective.reset();
    add_names(out.policy.blocked_by, on.blocked_by);
  }
  out.policy_per_slice = settings.policy_per_slice;
  out.admit_best_effort = settings.admit_best_effort;
  out.overcommit_compute = settings.overcommit_compute;
  out.memory_unit = settings.memory_unit;
  out.labels = settings.labels;
  return out;
}

api::Device view(const ViewContext& look, const NodeDevice& d) {
  const Agent& agent = look.agent();
  api::Device out;
  out.index = d.device.index;
  out.uuid = text(d.device.uuid);
  out.name = d.device.name;
  out.simulated = !agent.settings().paths.sim_set.empty();
  out.health = d.health();
  out.native_bytes = d.device.native.count;
  out.reserved_bytes = d.device.reserved.count;
  out.usable_bytes = d.device.usable().count;
  out.used_bytes = d.sample.used.count;
  out.context_bytes = d.context.count;
  out.utilization_percent = d.sample.utilization_percent;
  out.max_slices = max_isolated_slices;
  out.policy = view(look, d.device.uuid, agent.policies().of(d.device.uuid));
  out.compute = compute_enforcement_on(look, d.device.uuid);
  uint64_t switch_ns = assumed_switch_ns;
  if (const auto& compute = look.compute(d.device.uuid)) {
    if (compute->figures.switch_ns != 0) switch_ns = compute->figures.switch_ns;
    if (compute->arbitrated) out.arbitration = compute->figures;
  }
  out.unmanaged_processes = d.unmanaged_processes;
  const auto balance = agent.ledger().balances().find(d.device.uuid);
  if (balance == agent.ledger().balances().end()) return out;
  out.free_bytes = balance->second.free.count;
  out.slices = static_cast<uint32_t>(balance->second.held.size());
  uint64_t promised_bp = 0;
  for (const auto& [id, part] : balance->second.held) {
    out.granted_bytes += part.memory.count;
    const Slice& granted = agent.ledger().living().at(id).slice;
    out.share_granted_bp += part.share.basis_points;
    if (granted.shares_compute()) promised_bp += part.share.basis_points;
    if (granted.exclusive) out.exclusive_to = look.name_of(agent.ledger().living().at(id));
  }
  out.commitment = commitment(promised_bp, switch_ns);
  return out;
}

api::Slice view(const ViewContext& look, const LiveSlice& slice, bool whole) {
  api::Slice out = of_record(look.agent(), slice.record, whole);
  out.state = state_of(slice);
  out.command = slice.command;
  out.enforcement.compute = compute_enforcement_of(look, slice.record.slice);
  for (size_t d = 0; d < out.parts.size(); ++d) {
    api::SlicePart& part = out.parts[d];
    if (slice.report.page) {
      part.charged_bytes = slice.charged(static_cast<unsigned>(d)).count;
      part.spilled_bytes = slice.spilled(static_cast<unsigned>(d)).count;
    }
    part.compute = compute_of(look, slice.record, slice.record.slice.parts[d].device);
    part.used_bytes = slice.measured[d].truth.count;
    part.peak_bytes = std::max(slice.measured[d].peak.count, part.charged_bytes);
  }
  if (slice.stopping) out.ended_because = slice.why;
  if (whole) out.processes = processes_of(slice);
  return out;
}

api::Slice view(const Agent& agent, const ledger::UsageRecord& ended, bool whole) {
  api::Slice out = of_record(agent, ended, whole);
  out.state = SliceState::ended;
  out.ended_ns = ended.to ? static_cast<uint64_t>(ended.to->utc_ns) : 0;
  out.ended_because = ended.end_reason;
  return out;
}

NodeFigures figures(const ViewContext& look) {
  const Agent& agent = look.agent();
  NodeFigures out{.version = CARVE_VERSION,
                  .simulated = agent.settings().paths.sim_spec,
                  .samples = agent.samples(),
                  .sample_took_ns = static_cast<uint64_t>(agent.sample_took_ns()),
                  .devices = {},
                  .slices = {}};
  for (const NodeDevice& d : agent.devices()) out.devices.push_back(view(look, d));
  for (const auto& [id, slice] : agent.slices())
    if (look.may_see(slice->record)) out.slices.push_back(view(look, *slice, false));
  return out;
}

}  // namespace carve::node
