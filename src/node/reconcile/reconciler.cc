#include "node/reconcile/reconciler.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/invariant.h"
#include "core/xid.h"

namespace carve::node {

struct Reconciler::Step {
  const Observed& observed;
  const ReconcileRules& rules;
  std::map<uint64_t, SliceMemory>& memory;
  Reconciled out;

  void report(uint64_t slice, std::string text, std::optional<ViolationKind> violation = {}) {
    out.actions.push_back(AddEvent{.slice = slice, .text = std::move(text), .violation = violation});
  }

  void devices();
  void processes();
  void memory_of(const SliceObserved&);
  void time_of(size_t device);
  void over_quota();

 private:
  void unmanaged(const ProcessObserved&);
  void unattached(const SliceObserved&, size_t process);
  void outside(const SliceObserved&, size_t process);
  void act_against(const SliceObserved&, size_t process);
  // How the arbiter accounted a slice's time on one device, in percent of the time that the driver's evidence
  // covers: since the last sample, or WorkShown::window_ns.
  struct TimeShares {
    double charged = 0;
    double unsupported = 0;
    double unshown = 0;  // Charged during other slices' work but not shown by the driver.
  };
  std::optional<TimeShares> time_shares(const SliceObserved&, size_t part);
  void bypassed(const SliceObserved&, size_t part, double charged_percent);
  void false_report(const SliceObserved&, size_t part, const TimeShares&);
  const SliceObserved* slice(uint64_t id) const;
  static std::optional<size_t> part_on(const SliceObserved&, size_t device);
};

const SliceObserved* Reconciler::Step::slice(uint64_t id) const {
  const auto found = std::ranges::find(observed.slices, id, &SliceObserved::id);
  return found == observed.slices.end() ? nullptr : &*found;
}

std::optional<size_t> Reconciler::Step::part_on(const SliceObserved& slice, size_t device) {
  const auto found = std::ranges::find(slice.parts, std::optional(device), &PartObserved::device);
  if (found == slice.parts.end()) return std::nullopt;
  return static_cast<size_t>(found - slice.parts.begin());
}

void Reconciler::Step::devices() {
  for (const DeviceObserved& d : observed.devices) {
    for (const unsigned xid : d.xids)
      out.actions.push_back(
          AddEvent{.text = fmt::format("device {}: the driver reported {}", d.index, xid_text(xid)),
                   .is_caused_by_program = is_fault_of_program(xid)});
    if (d.before != d.now)
      report(0, fmt::format("device {}: {}", d.index,
                            d.now.state == HealthState::ok ? "recovered" : d.now.reason));
  }
}

// Assigns each process that the driver reports to its slice.
void Reconciler::Step::processes() {
  for (size_t i = 0; i < observed.processes.size(); ++i) {
    const ProcessObserved& p = observed.processes[i];
    invariant(p.device < observed.devices.size(), "a process is on an observed device");
    const SliceObserved* on = p.slice ? slice(*p.slice) : nullptr;
    if (on == nullptr) {
      unmanaged(p);
      continue;
    }
    SliceUse& use = out.slices[on->id];
    use.by_pid[p.pid].count += p.used.count;
    const auto part = part_on(*on, p.device);
    if (p.start != 0 && !p.attached)
      unattached(*on, i);
    else if (p.start != 0 && !part)
      outside(*on, i);
    if (!part) continue;
    use.parts[*part].work = use.parts[*part].work + p.work;
    // If contexts are paid by the device's reserve, a context does not count against the slice.
    use.parts[*part].used.count += minus(p.used, on->parts[*part].context).count;
  }
}

void Reconciler::Step::unmanaged(const ProcessObserved& p) {
  const bool shared = std::ranges::any_of(
      observed.slices, [&](const SliceObserved& s) { return part_on(s, p.device).has_value(); });
  if (shared && p.start != 0)
    out.unmanaged[p.device].push_back(
        fmt::format("process {} ({}) uses {} of this shared device and is in no slice", p.pid, p.command,
                    text(p.used).c_str()));
}

// A process attaches before it can hold device memory, so one that holds memory without being attached has
// bypassed the guest library.
void Reconciler::Step::unattached(const SliceObserved& on, size_t process) {
  const ProcessObserved& p = observed.processes[process];
  if (!memory[on.id].unattached.insert({p.pid, p.start}).second) return;
  const std::string why = on.limited ? why_unattached(p.evidence) : "the slice has no isolation";
  const bool is_violation = on.limited && !p.evidence.is_mps_server;
  report(on.id,
         fmt::format("process {} ({}) found unattached with {} on device {}: {}", p.pid, p.command,
                     text(p.used).c_str(), observed.devices[p.device].index, why),
         is_violation ? std::optional(ViolationKind::bypass) : std::nullopt);
  act_against(on, process);
}

// The guest library shows an attached process only the devices of its slice, so a process that uses another
// device has bypassed it.
void Reconciler::Step::outside(const SliceObserved& on, size_t process) {
  const ProcessObserved& p = observed.processes[process];
  if (!memory[on.id].outside.insert({p.pid, p.start, p.device}).second) return;
  report(on.id,
         fmt::format("process {} ({}) found with {} on device {}, which is not in the slice{}", p.pid,
                     p.command, text(p.used).c_str(), observed.devices[p.device].index,
                     on.limited ? "" : "; the slice has no isolation"),
         on.limited ? std::optional(ViolationKind::bypass) : std::nullopt);
  act_against(on, process);
}

void Reconciler::Step::act_against(const SliceObserved& on, size_t process) {
  const ProcessObserved& p = observed.processes[process];
  switch (action_against({on.limited, p.graphics_only, p.evidence.is_mps_server}, rules.audit)) {
    case AuditAction::report: break;
    case AuditAction::freeze: out.actions.push_back(FreezeSlice{on.id, process}); break;
    case AuditAction::kill: out.actions.push_back(KillProcess{on.id, process}); break;
  }
}

// Charges growth that the driver reports beyond the charges, and releases growth that has ended.
void Reconciler::Step::memory_of(const SliceObserved& slice) {
  SliceMemory& known = memory[slice.id];
  if (slice.ensure_failures != 0 && !std::exchange(known.ensure_reported, true))
    report(slice.id,
           fmt::format(
               "degraded: {} assumptions of the guest library did not hold, and calls may have been refused",
               slice.ensure_failures));
  for (size_t i = 0; i < slice.parts.size(); ++i) {
    const PartObserved& part = slice.parts[i];
    if (!part.reading || !part.device) continue;
    const DeviceObserved& device = observed.devices[*part.device];
    if (device.processes_hidden || device.now.state != HealthState::ok) continue;
    const Bytes used = out.slices[slice.id].parts[i].used;
    Reading reading = *part.reading;
    reading.truth = used.count;
    uint64_t wanted = known.parts[i].growth.wanted(part.charged_growth, reading);
    const bool beyond = slice.limited && used > part.quota;
    // With --over-quota report, growth is not charged; only the slice's own calls count.
    if (beyond && rules.over_quota == OverQuotaAction::report) wanted = 0;
    if (wanted != part.charged_growth)
      out.actions.push_back(ChargeGrowth{slice.id, i, part.charged_growth, wanted});
    if (beyond && !known.parts[i].beyond_quota)
      report(slice.id,
             fmt::format("found with {} on device {}, beyond its quota of {}: {}", text(used).c_str(),
                         device.index, text(part.quota).c_str(),
                         rules.over_quota == OverQuotaAction::report   ? "only reported"
                         : rules.over_quota == OverQuotaAction::refuse ? "further allocations are refused"
                                                                       : "the slice is stopped"),
             ViolationKind::over_quota);
    known.parts[i].beyond_quota = beyond;
  }
}

// Adds the time that was charged since the last sample. Returns no value if it proves nothing.
std::optional<Reconciler::Step::TimeShares> Reconciler::Step::time_shares(const SliceObserved& slice,
                                                                          size_t part) {
  if (!slice.parts[part].time) return std::nullopt;
  const ChargedTime now = *slice.parts[part].time;
  const WorkShown& shown = out.slices[slice.id].parts[part].work;
  std::deque<ChargedTime>& times = memory[slice.id].parts[part].times;
  // A new arbiter counts from 0 again.
  if (!times.empty() && now.busy_ns < times.back().busy_ns) times.clear();
  const uint64_t busy_ns = now.busy_ns - (times.empty() ? 0 : times.back().busy_ns);
  out.slices[slice.id].busy_ns += busy_ns;
  out.slices[slice.id].parts[part].busy_ns = busy_ns;
  const bool is_first = times.empty();
  if (!is_first && now.as_of_ns <= times.back().as_of_ns) return std::nullopt;
  const uint64_t window = shown.window_ns == 0 ? now.as_of_ns - (is_first ? 0 : times.back().as_of_ns)
                                               : static_cast<uint64_t>(shown.window_ns);
  // Keep the last sample from before the window, because the window begins with it.
  while (times.size() > 1 && times[1].as_of_ns + window <= now.as_of_ns) times.pop_front();
  const ChargedTime before = is_first ? ChargedTime{} : times.front();
  times.push_back(now);
  if (is_first) return std::nullopt;
  // Time before the first charge that the driver's evidence also covers counts as fully charged.
  const uint64_t covered = now.as_of_ns - before.as_of_ns, unknown = window > covered ? window - covered : 0;
  const auto percent = [&](uint64_t from, uint64_t to) {
    return 100.0 * static_cast<double>(to - std::min(from, to)) / static_cast<double>(covered + unknown);
  };
  return TimeShares{
      .charged = percent(before.busy_ns, now.busy_ns + unknown),
      .unsupported = percent(before.unsupported_ns, now.unsupported_ns),
      .unshown = std::max(0.0, percent(before.overlapped_ns, now.overlapped_ns) - shown.average),
  };
}

// Finds slices that launch beyond their leases: the driver's count shows them, and a slice cannot change it.
// A neighbour's time that was charged only because of the neighbour's own report may be missing from a
// slice's charge, so it counts in the slice's favour. A slice whose reports are not credible is itself
// reported.
void Reconciler::Step::time_of(size_t device) {
  if (observed.devices[device].now.state != HealthState::ok) return;
  struct Found {
    const SliceObserved& slice;
    size_t part;
    TimeShares time;
  };
  std::vector<Found> found;
  double unshown = 0;
  unsigned shown = 0;
  for (const SliceObserved& slice : observed.slices) {
    const auto part = part_on(slice, device);
    if (!part) continue;
    shown += out.slices[slice.id].parts[*part].work.percent;
    const auto time = time_shares(slice, *part);
    if (!time) continue;
    unshown += time->unshown;
    if (!slice.stopping && !slice.frozen) found.push_back({slice, *part, *time});
  }
  for (const auto& [slice, part, time] : found) {
    PartMemory& known = memory[slice.id].parts[part];
    const WorkShown& work = out.slices[slice.id].parts[part].work;
    if (known.bypass.certain(work.at_least, time.charged + unshown - time.unshown, work.window_ns != 0))
      bypassed(slice, part, time.charged);
    // A driver that shows no work at all does not count work.
    if (shown > 0 && known.claims.certain(time.unsupported, work.at_most, work.window_ns != 0))
      false_report(slice, part, time);
  }
}

void Reconciler::Step::false_report(const SliceObserved& slice, size_t part, const TimeShares& time) {
  report(slice.id,
         fmt::format("found with a false report: it claims work on device {} for a further {:.0f} % of the "
                     "time, but by the driver's count its kernels used at most {} %; the claim is not "
                     "charged to other slices",
                     observed.devices[*slice.parts[part].device].index, time.unsupported,
                     out.slices[slice.id].parts[part].work.at_most),
         ViolationKind::false_report);
}

void Reconciler::Step::bypassed(const SliceObserved& slice, size_t part, double charged_percent) {
  // The process with the highest utilization is reported for the whole slice.
  std::optional<size_t> worst;
  const size_t device = *slice.parts[part].device;
  for (size_t i = 0; i < observed.processes.size(); ++i) {
    const ProcessObserved& p = observed.processes[i];
    if (p.slice != slice.id || p.device != device) continue;
    if (!worst || p.work.percent > observed.processes[*worst].work.percent) worst = i;
  }
  if (!worst) return;
  const ProcessObserved& p = observed.processes[*worst];
  report(
      slice.id,
      fmt::format("found running beyond its leases: by the driver's count its kernels used at least {} % of "
                  "device {}, but by the arbiter's only {:.0f} %; process {} ({}) bypasses its launch gate",
                  out.slices[slice.id].parts[part].work.at_least, observed.devices[device].index,
                  charged_percent, p.pid, p.command),
      ViolationKind::bypass);
  if (p.start == 0) return;
  switch (rules.audit) {
    case AuditAction::report: break;
    case AuditAction::freeze: out.actions.push_back(FreezeSlice{slice.id, *worst}); break;
    case AuditAction::kill:
      out.actions.push_back(StopSlice{slice.id, "it ran beyond its leases (--audit kill)"});
      break;
  }
}

void Reconciler::Step::over_quota() {
  if (rules.over_quota != OverQuotaAction::kill) return;
  for (const SliceObserved& slice : observed.slices) {
    if (slice.stopping) continue;
    if (std::ranges::any_of(memory[slice.id].parts, &PartMemory::beyond_quota))
      out.actions.push_back(StopSlice{slice.id, "it held more than its quota (--over-quota kill)"});
    else if (slice.limited && slice.refused)  // The program may handle the error and continue.
      out.actions.push_back(StopSlice{slice.id, "it requested more than its quota (--over-quota kill)"});
  }
}

bool Reconciler::is_known(uint64_t slice, int pid, uint64_t start) const {
  const auto found = memory_.find(slice);
  return found != memory_.end() && found->second.unattached.contains({pid, start});
}

Reconciled Reconciler::reconcile(const Observed& observed, const ReconcileRules& rules) {
  Step step{observed, rules, memory_, {}};
  step.out.unmanaged.resize(observed.devices.size());
  std::set<uint64_t> living;
  for (const SliceObserved& slice : observed.slices) {
    invariant(slice.id != 0, "id 0 means the node");
    living.insert(slice.id);
    step.out.slices[slice.id].parts.resize(slice.parts.size());
    memory_[slice.id].parts.resize(slice.parts.size());
  }
  std::erase_if(memory_, [&](const auto& known) { return !living.contains(known.first); });

  step.devices();
  step.processes();
  for (auto& [id, known] : memory_) {  // A process that the driver no longer reports may return.
    std::erase_if(known.unattached, [&](const auto& process) {
      return std::ranges::none_of(observed.processes, [&](const ProcessObserved& p) {
        return p.slice == id && std::pair(p.pid, p.start) == process;
      });
    });
    std::erase_if(known.outside, [&](const auto& use) {
      return std::ranges::none_of(observed.processes, [&](const ProcessObserved& p) {
        return p.slice == id && std::tuple(p.pid, p.start, p.device) == use;
      });
    });
  }
  for (const SliceObserved& slice : observed.slices) step.memory_of(slice);
  for (size_t device = 0; device < observed.devices.size(); ++device) step.time_of(device);
  step.over_quota();
  invariant(step.out.slices.size() == observed.slices.size(), "each observed slice has its figures");
  return std::move(step.out);
}

}  // namespace carve::node
