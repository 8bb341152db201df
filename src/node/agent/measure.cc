// Once a second, and four times where compute is shared: what the driver says against what the tenants say.
// And every 50 ms the heartbeat, by which tenants know that somebody is home.
#include <algorithm>

#include "node/agent/agent.h"
#include "node/os/clock.h"
#include "node/os/log.h"
#include "wire/shm/budget.h"

namespace carve::node {
namespace {

constexpr int64_t beat_every = 50 * millisecond;
// What a look finds is to be known within a second. For memory one is enough. For compute two are needed that
// begin after the deed, and the driver tells of the sixth of a second before.
constexpr int64_t look_every = 250 * millisecond;
constexpr unsigned looks_per_reconciliation = 4;

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
  return last_sample_ns_ == 0 ? INT64_MAX : monotonic_ns() - last_sample_ns_;
}

void Agent::beat() {
  heartbeat_->monotonic_ns.store(static_cast<uint64_t>(monotonic_ns()), std::memory_order_release);
  ++beats_;
  std::vector<uint64_t> over;
  for (const auto& [id, tenant] : tenants_) {
    for (unsigned d = 0; d < tenant->use.what.parts.size() && tenant->report.page; ++d) {
      // A tenant can write anything here; nobody holds more than the device has.
      const uint64_t used = shm::read(tenant->report.page->budget[d]).used;
      const NodeDevice* on = device(tenant->use.what.parts[d].device);
      if (on != nullptr)
        tenant->measured[d].peak =
            std::max(tenant->measured[d].peak, std::min(Bytes{used}, on->device.native));
    }
    // Without a cgroup nobody tells us when the last of those left behind ends.
    const bool program_ended = tenant->entered && tenant->root.pidfd && !alive(tenant->root.pidfd);
    if (!tenant->cgroup && !tenant->persistent() && program_ended && beats_ % 4 == 0) over.push_back(id);
  }
  for (const uint64_t id : over) end_if_over(id);
}

void Agent::reconcile() {
  for (const auto& [uuid, arbiter] : arbiters_) arbiter->sample();
  if (sampler_->ask()) {
    for (const auto& [id, tenant] : tenants_) {
      for (unsigned d = 0; d < tenant->use.what.parts.size() && tenant->report.page; ++d) {
        const shm::Word word = shm::read(tenant->report.page->budget[d]);
        tenant->measured[d].reading.used_before = word.used;
        tenant->measured[d].reading.tag_before = word.tag;
      }
      if (!tenant->cgroup && !tenant->persistent() && tenant->entered) look_for_descendants(*tenant);
    }
  } else if (const int64_t since = sampler_->under_way_since_ns();
             since != 0 && monotonic_ns() - since > 5 * second) {
    for (NodeDevice& d : devices_)
      if (d.sample.trouble.empty()) {
        d.sample.trouble = "NVML has not answered for more than 5 s";
        event("", fmt::format("device {}: {}", d.device.index, d.sample.trouble));
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
  // Whose is each process that the driver shows?
  for (const auto& [id, tenant] : tenants_) {
    tenant->process_truth.clear();
    for (Measured& m : tenant->measured) m.reading.truth = m.sm_percent = 0;
  }
  for (size_t i = 0; i < devices_.size() && i < sample.devices.size(); ++i) {
    NodeDevice& d = devices_[i];
    if (d.sample.trouble != sample.devices[i].trouble)
      event("", fmt::format("device {}: {}", d.device.index,
                            sample.devices[i].trouble.empty() ? "works again" : sample.devices[i].trouble));
    d.sample = sample.devices[i];
    d.strangers.clear();
    bool shared = false;
    for (const auto& [id, tenant] : tenants_)
      shared |= std::ranges::find(tenant->use.what.parts, d.device.uuid, &SlicePart::device) !=
                tenant->use.what.parts.end();
    for (const ProcessUse& use : d.sample.processes) {
      const auto pid = static_cast<pid_t>(use.pid);
      Tenant* tenant = tenant_of(pid);
      if (tenant == nullptr) {
        if (const auto stat = stat_of(pid); shared && stat && stat->state != 'Z')
          d.strangers.push_back(
              fmt::format("process {} ({}) uses {} of this shared device and is in no slice", pid,
                          command_of(pid), text(use.used).c_str()));
        continue;
      }
      tenant->process_truth[pid].count += use.used.count;
      audit(*tenant, d, use);
      const auto part = std::ranges::find(tenant->use.what.parts, d.device.uuid, &SlicePart::device);
      if (part == tenant->use.what.parts.end()) continue;
      tenant->measured[static_cast<size_t>(part - tenant->use.what.parts.begin())].sm_percent +=
          use.sm_percent;
      // Contexts that the device's reserve pays for are not the tenant's.
      const Bytes own = settings_.contexts_in_slice ? use.used : minus(use.used, d.context);
      tenant->measured[static_cast<size_t>(part - tenant->use.what.parts.begin())].reading.truth += own.count;
    }
  }
  for (const auto& [id, tenant] : tenants_) {
    settle(*tenant);
    look_for_execs(*tenant);
    std::erase_if(tenant->unregistered, [this](const auto& known) { return known.second.seen != samples_; });
  }
  for (const NodeDevice& d : devices_) audit_work(d);
  if (settings_.over_quota != OverQuotaAct::kill) return;
  std::vector<Tenant*> over;
  for (const auto& [id, tenant] : tenants_)
    if (!tenant->stopping && std::ranges::any_of(tenant->measured, &Measured::beyond_quota))
      over.push_back(tenant.get());
  for (Tenant* tenant : over) stop(*tenant, "it held more than its quota (--over-quota kill)");
}

// Charges what the driver shows beyond the charges, or gives back what it shows no more.
void Agent::settle(Tenant& tenant) {
  if (!tenant.report.page) return;
  for (unsigned d = 0; d < tenant.use.what.parts.size(); ++d) {
    const NodeDevice* on = device(tenant.use.what.parts[d].device);
    if (on == nullptr || on->sample.processes_hidden || !on->sample.trouble.empty()) continue;
    Measured& m = tenant.measured[d];
    const shm::Word word = shm::read(tenant.report.page->budget[d]);
    m.reading.used_after = word.used;
    m.reading.tag_after = word.tag;
    m.truth = {m.reading.truth};
    const shm::LaneId lane{d, shm::Tag::agent, 0};
    const uint64_t charged = shm::holding(*tenant.report.page, lane);
    uint64_t wanted = m.growth.wanted(charged, m.reading);
    const Bytes quota = tenant.use.what.parts[d].memory;
    const bool beyond = tenant.limited() && m.truth > quota;
    // Only told, not held against it: its calls alone count.
    if (beyond && settings_.over_quota == OverQuotaAct::report) wanted = 0;
    if (wanted != charged)
      shm::change(*tenant.report.page, lane, charged, wanted, UINT64_MAX, shm::NoStops{},
                  shm::agent_attempts);
    if (beyond && !m.beyond_quota)
      event(tenant.name(),
            fmt::format("holds {} of device {}, its quota is {}: {}", text(m.truth).c_str(), on->device.index,
                        text(quota).c_str(),
                        settings_.over_quota == OverQuotaAct::report   ? "only reported"
                        : settings_.over_quota == OverQuotaAct::refuse ? "nothing more is given to it"
                                                                       : "it is ended"));
    m.beyond_quota = beyond;
  }
}

}  // namespace carve::node
