// Compares the driver's report with the slices' charges: once a second, and four times a second while a
// device is arbitrated. Writes the heartbeat every 50 ms, by which the guest library sees that an agent runs.
#include <algorithm>
#include <utility>

#include "node/agent/agent.h"
#include "node/slice/shared_blocks.h"
#include "os/clock.h"
#include "os/log.h"
#include "wire/shm/budget.h"

namespace carve::node {
namespace {

constexpr int64_t beat_every = 50 * os::millisecond;
// A violation is to be found within one second. For memory one sample is enough. For compute two samples must
// begin after the violation, and the driver's sample covers the preceding sixth of a second.
constexpr int64_t look_every = 250 * os::millisecond;
constexpr unsigned looks_per_reconciliation = 4;
// After a crash of the machine at most so much of a slice's time is not recorded.
constexpr int64_t record_alive_every = 60 * os::second;

}  // namespace

void Agent::begin(Sampler& sampler) {
  sampler_ = &sampler;
  loop_.watch(sampler.ready_fd(), EPOLLIN, [this](uint32_t) {
    if (const auto sample = sampler_->take()) take_sample(*sample);
  });
  loop_.every(beat_every, [this] { beat(); });
  loop_.every(look_every, [this] {
    if (!arbiters_.empty() || ++looks_ % looks_per_reconciliation == 0) reconcile();
  });
  beat();
  reconcile();
}

int64_t Agent::sample_age_ns() const {
  return last_sample_ns_ == 0 ? INT64_MAX : os::monotonic_ns() - last_sample_ns_;
}

void Agent::beat() {
  heartbeat_->monotonic_ns.store(static_cast<uint64_t>(os::monotonic_ns()), std::memory_order_release);
  ++beats_;
  std::vector<uint64_t> over;
  for (const auto& [id, slice] : slices_) {
    if (slice->report.page) settle_shared_blocks(slice->report.page->charges);
    for (unsigned d = 0; d < slice->record.slice.parts.size() && slice->report.page; ++d) {
      // A slice can write any value here. No slice holds more than the device has.
      const uint64_t used = shm::read(slice->report.page->charges.budget[d]).used;
      const NodeDevice* on = device(slice->record.slice.parts[d].device);
      if (on != nullptr)
        slice->measured[d].peak = std::max(slice->measured[d].peak, std::min(Bytes{used}, on->device.native));
    }
    // Without a cgroup no descriptor signals the end of the program's last descendant, so the processes are
    // scanned.
    const bool program_ended = slice->entered && slice->root.pidfd && !os::alive(slice->root.pidfd);
    if (!slice->cgroup && !slice->outlives_processes() && program_ended && beats_ % 4 == 0)
      over.push_back(id);
  }
  for (const uint64_t id : over) end_if_empty(id);
}

void Agent::reconcile() {
  for (const auto& [uuid, arbiter] : arbiters_) arbiter->sample();
  if (sampler_->ask()) {
    for (const auto& [id, slice] : slices_) {
      for (unsigned d = 0; d < slice->record.slice.parts.size() && slice->report.page; ++d) {
        const shm::Word word = shm::read(slice->report.page->charges.budget[d]);
        slice->measured[d].reading.used_before = word.used;
        slice->measured[d].reading.tag_before = word.tag;
      }
      if (!slice->cgroup && !slice->outlives_processes() && slice->entered) scan_descendants(*slice);
    }
  } else if (const int64_t since = sampler_->under_way_since_ns();
             since != 0 && os::monotonic_ns() - since > 5 * os::second) {
    for (NodeDevice& d : devices_)
      if (d.sample.health.state == HealthState::ok) {
        d.sample.health = {HealthState::unresponsive, "NVML has not answered for more than 5 s"};
        event("", fmt::format("device {}: {}", d.device.index, d.sample.health.reason));
      }
  }
}

void Agent::take_sample(const Sample& sample) {
  last_sample_ns_ = sample.ended_ns;
  sample_took_ns_ = sample.ended_ns - sample.begun_ns;
  ++samples_;
  for (const auto& [index, xid] : sample.xids) {
    const auto d = std::ranges::find(devices_, index, [](const NodeDevice& n) { return n.device.index; });
    if (d == devices_.end()) continue;
    d->xid = fmt::format("the driver reported Xid {}", xid);
    event("", fmt::format("device {}: {}", index, d->xid));
  }
  // Assigns each process that the driver reports to its slice.
  for (const auto& [id, slice] : slices_) {
    slice->process_truth.clear();
    for (PartUsage& m : slice->measured) m.reading.truth = m.sm_percent = 0;
  }
  for (size_t i = 0; i < devices_.size() && i < sample.devices.size(); ++i) {
    NodeDevice& d = devices_[i];
    const DeviceHealth& health = sample.devices[i].health;
    if (d.sample.health != health)
      event("", fmt::format("device {}: {}", d.device.index,
                            health.state == HealthState::ok ? "recovered" : health.reason));
    d.sample = sample.devices[i];
    d.unmanaged_processes.clear();
    bool shared = false;
    for (const auto& [id, slice] : slices_)
      shared |= std::ranges::find(slice->record.slice.parts, d.device.uuid, &SlicePart::device) !=
                slice->record.slice.parts.end();
    for (const ProcessUse& use : d.sample.processes) {
      const auto pid = static_cast<pid_t>(use.pid);
      LiveSlice* slice = slice_of(pid);
      if (slice == nullptr) {
        if (const auto stat = os::stat_of(pid); shared && stat && stat->state != 'Z')
          d.unmanaged_processes.push_back(
              fmt::format("process {} ({}) uses {} of this shared device and is in no slice", pid,
                          os::command_of(pid), text(use.used).c_str()));
        continue;
      }
      slice->process_truth[pid].count += use.used.count;
      audit(*slice, d, use);
      const auto part = std::ranges::find(slice->record.slice.parts, d.device.uuid, &SlicePart::device);
      if (part == slice->record.slice.parts.end()) continue;
      slice->measured[static_cast<size_t>(part - slice->record.slice.parts.begin())].sm_percent +=
          use.sm_percent;
      // If the device's reserved bytes pay for contexts, a context does not count against the slice.
      const Bytes own = settings_.contexts_in_slice ? use.used : minus(use.used, d.context);
      slice->measured[static_cast<size_t>(part - slice->record.slice.parts.begin())].reading.truth +=
          own.count;
    }
  }
  for (const auto& [id, slice] : slices_) {
    charge_growth(*slice);
    scan_execs(*slice);
    std::erase_if(slice->unattached, [this](const auto& known) { return known.second.seen != samples_; });
  }
  for (const NodeDevice& d : devices_) audit_work(d);
  if (sample.ended_ns - recorded_alive_ns_ >= record_alive_every) record_alive();
  if (settings_.over_quota != OverQuotaAction::kill) return;
  std::vector<LiveSlice*> over;
  for (const auto& [id, slice] : slices_)
    if (!slice->stopping && std::ranges::any_of(slice->measured, &PartUsage::beyond_quota))
      over.push_back(slice.get());
  for (LiveSlice* slice : over) stop(*slice, "it held more than its quota (--over-quota kill)");
}

// One transaction for all slices.
void Agent::record_alive() {
  recorded_alive_ns_ = os::monotonic_ns();
  if (slices_.empty()) return;
  std::map<uint64_t, uint64_t> busy;
  for (const auto& [id, slice] : slices_) busy.emplace(id, slice->busy_ns);
  if (const auto kept = ledger::post(ledger_, *store_, ledger_.alive(now(), busy)); !kept)
    os::log::error("{}", kept.error().sentence);
}

// Charges the growth that the driver reports beyond the charges, and releases growth that has ended.
void Agent::charge_growth(LiveSlice& slice) {
  if (!slice.report.page) return;
  const uint32_t failures = slice.report.page->ensure_failures.load(std::memory_order_relaxed);
  if (failures != 0 && !std::exchange(slice.ensure_reported, true))
    event(slice.name(),
          fmt::format(
              "degraded: {} assumptions of the guest library did not hold, and calls may have been refused",
              failures));
  for (unsigned d = 0; d < slice.record.slice.parts.size(); ++d) {
    const NodeDevice* on = device(slice.record.slice.parts[d].device);
    if (on == nullptr || on->sample.processes_hidden || on->sample.health.state != HealthState::ok) continue;
    PartUsage& m = slice.measured[d];
    const shm::Word word = shm::read(slice.report.page->charges.budget[d]);
    m.reading.used_after = word.used;
    m.reading.tag_after = word.tag;
    m.truth = {m.reading.truth};
    const shm::LaneId lane{d, shm::Tag::agent, 0};
    const uint64_t charged = shm::holding(slice.report.page->charges, lane);
    uint64_t wanted = m.growth.wanted(charged, m.reading);
    const Bytes quota = slice.record.slice.parts[d].memory;
    const bool beyond = slice.limited() && m.truth > quota;
    // With --over-quota report, growth is not charged; only the slice's own calls count.
    if (beyond && settings_.over_quota == OverQuotaAction::report) wanted = 0;
    if (wanted != charged)
      shm::change(slice.report.page->charges, lane, charged, wanted, UINT64_MAX, shm::NoStops{},
                  shm::agent_attempts);
    if (beyond && !m.beyond_quota)
      event(slice.name(),
            fmt::format("found with {} on device {}, beyond its quota of {}: {}", text(m.truth).c_str(),
                        on->device.index, text(quota).c_str(),
                        settings_.over_quota == OverQuotaAction::report   ? "only reported"
                        : settings_.over_quota == OverQuotaAction::refuse ? "further allocations are refused"
                                                                          : "the slice is stopped"));
    m.beyond_quota = beyond;
  }
}

}  // namespace carve::node
