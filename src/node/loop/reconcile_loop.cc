#include "node/loop/reconcile_loop.h"

#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <tuple>

#include "core/escaped.h"
#include "core/xid.h"
#include "node/reconcile/energy.h"
#include "node/slice/processes.h"
#include "os/clock.h"
#include "os/log.h"
#include "wire/shm/budget.h"

namespace carve::node {
namespace {

constexpr int64_t turn_interval_ns = 50 * os::millisecond;
// A violation must be detected within one second. For memory one sample is enough. For compute two samples
// must begin after the violation, and the driver's sample covers the preceding sixth of a second.
constexpr int64_t sample_interval_ns = 250 * os::millisecond;
constexpr unsigned intervals_without_arbiter = 4;
// Without a cgroup, no descriptor signals the end of the program's last descendant, so the processes are
// scanned.
constexpr unsigned turns_per_scan = 4;
constexpr int64_t rests_per_reading = 99;
constexpr int64_t max_sample_ns = 5 * os::second;
// A machine crash loses at most this much of a slice's recorded time.
constexpr int64_t record_alive_interval_ns = 60 * os::second;

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

// The server counts as a process on the device even before it has a client.
bool runs_mps_server(const Observed& observed, size_t device) {
  return std::ranges::any_of(observed.processes, [device](const ProcessObserved& p) {
    return p.device == device && p.evidence.is_mps_server;
  });
}

// Returns the inspection group of a process in no slice, which is that of its user. No slice has such an id.
uint64_t user_group(pid_t pid) {
  struct stat info {};
  const bool found = stat(fmt::format("/proc/{}", pid).c_str(), &info) == 0;
  return uint64_t{1} << 63 | (found ? info.st_uid : UINT32_MAX);
}

bool has_part_on(const LiveSlice& slice, const NodeDevice& d) {
  return std::ranges::any_of(slice.granted().parts,
                             [&](const SlicePart& p) { return p.device == d.device.uuid; });
}

bool is_attached(const LiveSlice& slice, pid_t pid) {
  const auto found = slice.attached.lower_bound(os::ProcessId{pid, 0});
  return found != slice.attached.end() && found->first.pid == pid;
}

}  // namespace

void ReconcileLoop::sample_with(Sampler& sampler) {
  sampler_ = &sampler;
  request_sample();
}

void ReconcileLoop::start() {
  node_.inspector->on_late([this](const Inspection& seen, uint64_t group) { report_late(seen, group); });
  node_.loop.every(turn_interval_ns, [this] { follow_pages(); });
  node_.loop.every(sample_interval_ns, [this] {
    if (node_.compute.is_arbitrating() || ++intervals_ % intervals_without_arbiter == 0) request_sample();
  });
  follow_pages();
}

void ReconcileLoop::follow_pages() {
  ++turns_;
  ended_watch_.see_members(turns_, turn_interval_ns);
  blocks_.settle(os::monotonic_ns());
  std::vector<uint64_t> ended;
  for (const auto& [id, slice] : node_.slices) {
    slice->raise_peaks();
    const bool program_ended = slice->entered && slice->root.pidfd && !os::alive(slice->root.pidfd);
    if (!slice->cgroup && !slice->outlives_processes() && program_ended && turns_ % turns_per_scan == 0)
      ended.push_back(id);
  }
  for (const uint64_t id : ended) lifecycle_.ending().end_if_empty(id);
}

void ReconcileLoop::request_sample() {
  node_.compute.sample();
  if (sampler_ == nullptr) return;  // NVML has not responded yet.
  if (sampler_->ask([this](const Sample& sample) { take(sample); })) {
    for (const auto& [id, slice] : node_.slices) {
      for (unsigned d = 0; d < slice->granted().parts.size() && slice->report.page; ++d)
        slice->measured[d].requested = shm::in_use(slice->report.page->charges, d);
      if (slice->cgroup || !slice->has_programs() || !slice->entered) continue;
      scan_descendants(*slice);
      ended_watch_.see_descendants(*slice);
    }
  } else if (const int64_t since = sampler_->under_way_since_ns();
             since != 0 && os::monotonic_ns() - since > max_sample_ns) {
    for (NodeDevice& d : node_.devices)
      if (d.sample.health.state == HealthState::ok) {
        d.sample.health = {HealthState::unresponsive, "NVML has not responded for more than 5 s"};
        node_.event("", fmt::format("device {}: {}", d.device.index, d.sample.health.reason));
      }
  }
}

void ReconcileLoop::take(const Sample& sample) {
  const Observed observed = observe(sample);
  const Reconciled done = reconciler_.reconcile(
      observed, {.audit = node_.settings.audit, .over_quota = node_.settings.over_quota});
  divide_energy(sample, done);
  keep_figures(sample, observed, done);
  if (node_.kernel_log) attribute(node_.kernel_log->read());
  ended_watch_.audit(sample, observed);
  report_moves();
  for (const auto& [id, slice] : node_.slices) lifecycle_.attachments().reclaim_after_exec(*slice);
  if (sample.ended_ns - recorded_alive_ns_ >= record_alive_interval_ns) record_alive();
  for (const Action& action : done.actions) carry_out(observed, action);
}

Observed ReconcileLoop::observe(const Sample& sample) {
  Observed out;
  std::vector<std::optional<DeviceCompute>> compute;
  for (size_t i = 0; i < node_.devices.size() && i < sample.devices.size(); ++i) {
    const NodeDevice& d = node_.devices[i];
    const DeviceSample& now = sample.devices[i];
    DeviceObserved& device = out.devices.emplace_back();
    device.index = d.device.index;
    device.before = d.sample.health;
    device.now = now.health;
    device.processes_hidden = now.processes_hidden;
    for (const auto& [index, xid] : sample.xids)
      if (index == d.device.index) device.xids.push_back(xid);
    for (const ProcessUse& use : now.processes) out.processes.push_back(observe(use, i));
    compute.push_back(node_.compute.figures(d.device.uuid));
  }
  for (const auto& [id, slice] : node_.slices) out.slices.push_back(observe(*slice, compute));
  return out;
}

const Inspection* ReconcileLoop::inspection_of(const os::ProcessId& process, const LiveSlice* slice) {
  const Inspection* const known = node_.inspector->known(process);
  if (known != nullptr && !known->late) return known;
  const uint64_t group = slice != nullptr ? slice->id() : user_group(process.pid);
  node_.inspector->inspect(process, group, [this](const Inspection& seen) {
    // While a device is arbitrated, the next sample is soon anyway, and two in quick succession would count
    // as one proof.
    if (!seen.late && !node_.compute.is_arbitrating()) request_sample();
  });
  return known;
}

void ReconcileLoop::report_late(const Inspection& seen, uint64_t group) {
  const std::string text = fmt::format(
      "cannot read the files of process {} ({}) in /proc: a page of its memory comes from a file system that "
      "does not respond",
      seen.process.pid, seen.command);
  LiveSlice* const slice = node_.slices.find(group);
  if (slice == nullptr) return node_.outside_event({}, text);
  slice->violations.add(ViolationKind::unreadable_process, escaped(text));
  node_.caused_event(*slice, text);
}

// If every process is attached, this takes one look-up per process. A process that has not been inspected yet
// is not a finding; the sample after the inspection decides.
ProcessObserved ReconcileLoop::observe(const ProcessUse& use, size_t device) {
  ProcessObserved out;
  const auto pid = static_cast<pid_t>(use.pid);
  const LiveSlice* const slice = node_.slices.slice_of(pid);
  out.device = device;
  out.pid = pid;
  out.used = use.used;
  out.work = use.work;
  out.graphics_only = use.graphics_only;
  out.attached = slice != nullptr && is_attached(*slice, pid);
  if (slice != nullptr) out.slice = slice->id();
  const bool is_outside = slice != nullptr && !has_part_on(*slice, node_.devices[device]);
  // An attached process without work cannot be a finding on a device of its slice.
  if (out.attached && use.work.percent == 0 && !is_outside) return out;
  const auto stat = os::stat_of(pid);
  if (!stat || stat->state == 'Z') return out;  // The process has ended since the driver's report.
  const Inspection* const seen = inspection_of(stat->id, slice);
  if (seen == nullptr ? slice != nullptr && (!out.attached || is_outside) : seen->ended) return out;
  out.start = stat->id.start;
  out.command = node_.inspector->command_of(stat->id);
  if (seen != nullptr) out.evidence = seen->evidence;
  return out;
}

SliceObserved ReconcileLoop::observe(const LiveSlice& slice,
                                     const std::vector<std::optional<DeviceCompute>>& compute) const {
  SliceObserved out;
  out.id = slice.id();
  out.limited = slice.limited();
  out.stopping = slice.stopping;
  out.frozen = slice.frozen;
  shm::Report* const page = slice.report.page ? &*slice.report.page : nullptr;
  if (page != nullptr) {
    out.ensure_failures = page->ensure_failures.load(std::memory_order_relaxed);
    out.refused = page->quota_refused_ns.load(std::memory_order_relaxed) > started_ns_;
  }
  for (unsigned d = 0; d < slice.granted().parts.size(); ++d) {
    const SlicePart& granted = slice.granted().parts[d];
    PartObserved& part = out.parts.emplace_back();
    part.quota = granted.memory;
    if (page != nullptr) {
      const shm::InUse before = slice.measured[d].requested, now = shm::in_use(page->charges, d);
      part.reading = Reading{before.bytes, before.version, now.bytes, now.version, 0};
      part.charged_growth = shm::holding(page->charges, {d, shm::Tag::agent, 0});
    }
    for (size_t i = 0; i < compute.size(); ++i) {
      if (node_.devices[i].device.uuid != granted.device) continue;
      part.device = i;
      if (!node_.settings.contexts_in_slice) part.context = node_.devices[i].context;
      if (!compute[i]) continue;
      const auto mine = std::ranges::find(compute[i]->slices, slice.id(), &SliceCompute::slice);
      if (mine != compute[i]->slices.end())
        part.time = ChargedTime{.busy_ns = mine->figures.busy_ns,
                                .as_of_ns = mine->figures.as_of_ns,
                                .overlapped_ns = mine->overlapped_ns,
                                .unsupported_ns = mine->unsupported_ns};
    }
  }
  return out;
}

// Must be called before keep_figures(), which replaces the last sample.
void ReconcileLoop::divide_energy(const Sample& sample, const Reconciled& done) {
  if (node_.last_sample_ns == 0 || sample.ended_ns <= node_.last_sample_ns) return;
  const auto elapsed = static_cast<uint64_t>(sample.ended_ns - node_.last_sample_ns);
  for (size_t i = 0; i < node_.devices.size() && i < sample.devices.size(); ++i) {
    const NodeDevice& d = node_.devices[i];
    const auto before = d.sample.readings.energy_millijoules,
               now = sample.devices[i].readings.energy_millijoules;
    if (!before || !now || *now <= *before) continue;  // A driver that was loaded again counts from 0.
    std::vector<std::atomic<uint64_t>*> sums;
    std::vector<EnergyUse> uses;
    for (const auto& [id, use] : done.slices) {
      const LiveSlice& slice = *node_.slices.find(id);
      for (size_t part = 0; part < use.parts.size() && slice.control; ++part) {
        if (slice.granted().parts[part].device != d.device.uuid) continue;
        const SliceUse::Part& of = use.parts[part];
        sums.push_back(&slice.control->devices[part].energy_microjoules);
        uses.push_back({.busy_ns = of.busy_ns.value_or(elapsed / 100 * of.work.percent),
                        .has_whole_device = slice.granted().exclusive});
      }
    }
    const std::vector<uint64_t> parts = split_energy((*now - *before) * 1000, elapsed, uses);
    for (size_t j = 0; j < parts.size(); ++j) sums[j]->fetch_add(parts[j], std::memory_order_relaxed);
  }
}

// Returns whether the driver or an arbiter has seen work of the slice. If the driver does not report the work
// of each process, every slice of a busy device counts as active.
bool ReconcileLoop::is_active(const LiveSlice& slice, const SliceUse& use) const {
  if (use.busy_ns > 0) return true;
  for (size_t d = 0; d < use.parts.size(); ++d) {
    if (use.parts[d].work.percent > 0) return true;
    const NodeDevice* const on = node_.device(slice.granted().parts[d].device);
    if (on != nullptr && on->sample.processes_hidden && on->sample.utilization_percent > 0) return true;
  }
  return false;
}

void ReconcileLoop::keep_figures(const Sample& sample, const Observed& observed, const Reconciled& done) {
  node_.last_sample_ns = sample.ended_ns;
  node_.sample_took_ns = sample.ended_ns - sample.begun_ns;
  ++node_.samples;
  for (size_t i = 0; i < done.unmanaged.size(); ++i) {
    NodeDevice& d = node_.devices[i];
    const DeviceMode before = d.sample.mode;
    d.sample = sample.devices[i];
    if (runs_mps_server(observed, i) && d.sample.mode == DeviceMode::whole) d.sample.mode = DeviceMode::mps;
    if (d.sample.mode != before)
      node_.event("", fmt::format("device {}: {}", d.device.index,
                                  d.sample.mode == DeviceMode::whole ? "offered for slices again"
                                                                     : mode_message(d.sample.mode)));
    d.unmanaged_processes = done.unmanaged[i];
    d.used_in_slices = d.used_outside_slices = Bytes{};
  }
  for (const ProcessObserved& process : observed.processes) {
    NodeDevice& on = node_.devices[process.device];
    const LiveSlice* const slice = process.slice ? node_.slices.find(*process.slice) : nullptr;
    const bool is_in_slice = slice != nullptr && has_part_on(*slice, on);
    (is_in_slice ? on.used_in_slices : on.used_outside_slices).count += process.used.count;
  }
  for (NodeDevice& d : node_.devices)
    for (const auto& [index, xid] : sample.xids) {
      if (index != d.device.index) continue;
      ++d.xids[xid];
      d.last_xid = xid;
      if (!is_fault_of_program(xid)) d.xid = "the driver reported " + xid_text(xid);
    }
  for (const auto& [id, use] : done.slices) {
    LiveSlice& slice = *node_.slices.find(id);
    slice.used_by_pid = use.by_pid;
    slice.busy_ns += use.busy_ns;
    if (is_active(slice, use)) slice.active_ns = sample.ended_ns;
    for (size_t d = 0; d < use.parts.size(); ++d) {
      slice.measured[d].used = use.parts[d].used;
      slice.measured[d].sm_percent = use.parts[d].work.percent;
      node_.compute.support(slice.granted().parts[d].device, id, use.parts[d].work);
    }
  }
}

// A slice can create any number of cgroups below its own, which must be read too. Reading is therefore
// limited to a hundredth of the loop's time.
void ReconcileLoop::report_moves() {
  const int64_t begun = os::monotonic_ns();
  if (begun < moves_not_before_ns_) return;
  std::vector<CgroupMoves::Members> members;
  for (const auto& [id, slice] : node_.slices)
    if (slice->cgroup) members.push_back({id, slice->root.id, slice->cgroup->pids()});
  const int64_t ended = os::monotonic_ns();
  moves_not_before_ns_ = ended + rests_per_reading * (ended - begun);
  for (const CgroupMove& move : moves_.find(members)) {
    LiveSlice* const from = node_.slices.find(move.from);
    LiveSlice* const to = node_.slices.find(move.to);
    if (to == nullptr) continue;
    const std::string text =
        moved_text(move.process.pid, from != nullptr ? from->name() : "that has ended", to->name());
    LiveSlice& accused = from != nullptr ? *from : *to;
    accused.violations.add(ViolationKind::foreign_process, text);
    if (node_.caused_event(accused, text) && from != nullptr) node_.event(to->name(), text);
  }
}

// A program can cause the same error many times a second, so equal errors become one event.
void ReconcileLoop::attribute(const std::vector<XidRecord>& records) {
  std::map<std::tuple<const NodeDevice*, uint32_t, pid_t>, std::pair<uint64_t, std::string>> causes;
  for (const XidRecord& record : records) {
    const auto on = std::ranges::find_if(node_.devices, [&record](const NodeDevice& d) {
      return parse_pci_address(d.pci_id) == record.device;
    });
    if (on == node_.devices.end() || !record.pid) continue;
    auto& [count, process] = causes[{&*on, record.code, *record.pid}];
    ++count;
    process = record.process;
  }
  for (const auto& [cause, times] : causes) {
    const auto& [device, code, pid] = cause;
    const auto& [count, process] = times;
    const std::string text =
        fmt::format("{} on device {} caused by process {} ({}){}", xid_text(code), device->device.index, pid,
                    process, count == 1 ? "" : fmt::format(", {} times", count));
    LiveSlice* slice = node_.slices.slice_of(pid);
    const EndedProcesses::Owner* ended = slice != nullptr ? nullptr : node_.ended_processes.find(pid);
    if (ended != nullptr) slice = node_.slices.find(ended->slice);
    if (slice != nullptr) slice->xids[code] += count;
    if (slice != nullptr)
      node_.caused_event(*slice, text);
    else if (ended != nullptr)
      node_.outside_event({.name = ended->name, .id = ended->slice}, text);
    else
      node_.outside_event({}, text + ", which is in no slice");
  }
}

void ReconcileLoop::carry_out(const Observed& observed, const Action& action) {
  const auto with = [this](uint64_t id, auto act) {
    if (LiveSlice* slice = node_.slices.find(id)) act(*slice);  // An earlier action may have ended it.
  };
  const auto process = [&](size_t i) {
    return os::ProcessId{observed.processes[i].pid, observed.processes[i].start};
  };
  std::visit(
      Overloaded{
          [&](const AddEvent& a) {
            LiveSlice* const slice = node_.slices.find(a.slice);
            if (slice != nullptr && a.violation) slice->violations.add(*a.violation, escaped(a.text));
            if (slice != nullptr) node_.caused_event(*slice, a.text);
            if (a.slice != 0) return;
            if (a.is_caused_by_program)
              node_.outside_event({}, a.text);
            else
              node_.event("", a.text);
          },
          [&](const ChargeGrowth& a) {
            with(a.slice, [&](LiveSlice& slice) {
              shm::change(slice.report.page->charges, {static_cast<unsigned>(a.part), shm::Tag::agent, 0},
                          a.from, a.to, UINT64_MAX, shm::NoStops{}, shm::agent_attempts);
            });
          },
          [&](const FreezeSlice& a) {
            with(a.slice, [&](LiveSlice& slice) { freeze_slice(slice, process(a.process)); });
          },
          [&](const KillProcess& a) {
            with(a.slice, [&](LiveSlice& slice) {
              if (const os::Fd pidfd = os::open_process(process(a.process))) os::send_signal(pidfd, SIGKILL);
              node_.event(slice.name(),
                          fmt::format("process {} killed (--audit kill)", observed.processes[a.process].pid));
            });
          },
          [&](const StopSlice& a) {
            with(a.slice, [&](LiveSlice& slice) { lifecycle_.ending().stop(slice, a.why); });
          },
      },
      action);
}

void ReconcileLoop::freeze_slice(LiveSlice& slice, const os::ProcessId& process) {
  if (freeze(slice, process))
    node_.event(slice.name(), fmt::format("frozen (--audit freeze); carve thaw {} resumes it", slice.name()));
  else if (slice.stopped.contains(process))
    node_.event(slice.name(), fmt::format("process {} stopped (--audit freeze; the agent has no cgroup for "
                                          "the slice); carve thaw {} resumes it",
                                          process.pid, slice.name()));
}

// Uses one transaction for all slices.
void ReconcileLoop::record_alive() {
  recorded_alive_ns_ = os::monotonic_ns();
  if (node_.slices.size() == 0) return;
  std::map<uint64_t, ledger::UsedAmounts> used;
  for (const auto& [id, slice] : node_.slices) used.emplace(id, slice->used_amounts());
  if (const auto kept = node_.books.post(node_.ledger().alive(stamp_now(), used)); !kept)
    os::log::error("{}", kept.error().message);
}

}  // namespace carve::node
