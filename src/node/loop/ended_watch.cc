#include "node/loop/ended_watch.h"

#include <algorithm>
#include <utility>

#include "os/clock.h"

namespace carve::node {
namespace {

uint64_t utc_us() { return static_cast<uint64_t>(os::utc_ns() / 1000); }

bool has_part_on(const SliceObserved& slice, size_t device) {
  return std::ranges::find(slice.parts, std::optional(device), &PartObserved::device) != slice.parts.end();
}

}  // namespace

// Slices whose cgroups take long to read are read less often, so that at most 0.2 % of the time is spent on
// this.
void EndedWatch::see_members(uint64_t turn, int64_t turn_interval_ns) {
  if (!accounting_) return;
  for (const auto& [id, slice] : node_.slices) {
    if (!slice->cgroup || turn < slice->next_members_turn) continue;
    const int64_t begun = os::monotonic_ns();
    members_.see({id, slice->name()}, slice->cgroup->pids(), utc_us());
    const int64_t took = os::monotonic_ns() - begun;
    slice->next_members_turn = turn + 1 + static_cast<uint64_t>(took / (turn_interval_ns / 500));
  }
}

void EndedWatch::see_descendants(const LiveSlice& slice) {
  if (!accounting_) return;
  std::vector<int> pids;
  for (const auto& [process, pidfd] : slice.descendants) pids.push_back(process.pid);
  members_.see({slice.id(), slice.name()}, pids, utc_us());
}

KnownAs EndedWatch::known_as(const AccountedProcess& process) const {
  // A start outside the time from the machine's boot until now is not UTC; in that case only the pid is
  // compared.
  const AttachedSpan since_boot = attached_span({});
  const bool is_utc = since_boot.covers(process.start_us);
  for (const auto& [id, slice] : node_.slices) {
    const auto found = slice->attached.lower_bound(os::ProcessId{process.pid, 0});
    if (found == slice->attached.end() || found->first.pid != process.pid) continue;
    if (!is_utc || attached_span(found->first).covers(process.start_us)) return KnownAs::attached;
  }
  return node_.ended_processes.known_as(process.pid, is_utc ? process.start_us : 0);
}

const SliceMembers::Slice* EndedWatch::slice_of(const AccountedProcess& process) const {
  return members_.find(process.pid, process.start_us, process.start_us + process.active_ms * 1000);
}

AccountedObserved EndedWatch::observe(const AccountedProcess& process, size_t device,
                                      const Observed& observed) const {
  AccountedObserved out{.device = observed.devices[device].index,
                        .pid = process.pid,
                        .start_us = process.start_us,
                        .active_ms = process.active_ms,
                        .peak = process.peak,
                        .is_running = process.is_running,
                        .known_as = known_as(process)};
  out.is_shared = std::ranges::any_of(
      observed.slices, [device](const SliceObserved& slice) { return has_part_on(slice, device); });
  out.is_decided = std::ranges::any_of(observed.processes, [&](const ProcessObserved& seen) {
    return seen.device == device && seen.pid == process.pid && seen.start != 0;
  });
  if (const SliceMembers::Slice* in = slice_of(process)) {
    out.slice = in->id;
    out.slice_name = in->name;
    if (const LiveSlice* slice = node_.slices.find(in->id)) out.limited = slice->limited();
  }
  return out;
}

void EndedWatch::audit(const Sample& sample, const Observed& observed) {
  std::vector<AccountedObserved> accounted;
  accounting_ = false;
  for (size_t i = 0; i < observed.devices.size(); ++i) {
    const AccountingSample& now = sample.devices[i].accounting;
    const bool answered = observed.devices[i].now.state == HealthState::ok;
    if (answered && std::exchange(is_accounted_[i], now.is_on) && !now.is_on)
      node_.event("", fmt::format("device {}: ended processes are no longer audited: {}",
                                  observed.devices[i].index, now.trouble));
    accounting_ |= now.is_on;
    for (const AccountedProcess& process : sample.devices[i].accounting.processes)
      accounted.push_back(observe(process, i, observed));
  }
  for (const EndedFinding& found : audit_.judge(accounted)) report(found);
}

void EndedWatch::report(const EndedFinding& found) {
  LiveSlice* const slice = found.slice ? node_.slices.find(*found.slice) : nullptr;
  if (slice != nullptr) {
    if (found.violation) slice->violations.add(*found.violation, found.text);
    node_.caused_event(*slice, found.text);
    return;
  }
  node_.outside_event({.name = found.slice_name, .id = found.slice.value_or(0)}, found.text);
}

}  // namespace carve::node
