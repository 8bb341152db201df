// Adopts the slices of an earlier agent. The ledger has the expected slices, state files and shared memory
// the earlier state, the kernel the living processes. Programs are not disturbed: shared memory, cgroups and
// socket paths are unchanged.
#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>

#include "node/agent/agent.h"
#include "os/log.h"
#include "wire/shm/shared_blocks.h"

namespace carve::node {

Outcome<void> Agent::adopt(bool rebuild) {
  auto heartbeat = runtime_.heartbeat();
  if (!heartbeat) return tl::unexpected(heartbeat.error());
  heartbeat_ = std::move(*heartbeat);

  const auto remembered = store_->read();
  if (!remembered) return tl::unexpected(remembered.error());
  for (const ledger::Change& change : *remembered)
    if (const auto good = ledger_.apply(change); !good)
      return failure(FailureKind::unavailable, "the ledger contradicts itself: {}", good.error().sentence);

  // First the drift that shows without a scan of processes, then the adoption of each living slice, then the
  // rest.
  ledger::Observed seen = observed();
  seen.ledger_lost = rebuild;
  if (const auto done = agree(seen); !done) return done;
  std::set<uint64_t> has_processes;
  std::vector<ledger::UsageRecord> records;
  for (const auto& [id, record] : ledger_.living()) records.push_back(record);
  for (const ledger::UsageRecord& record : records)
    if (adopt_slice(record)) has_processes.insert(record.id);
  seen = observed();
  seen.has_processes = std::move(has_processes);
  if (const auto done = agree(seen); !done) return done;
  open_policies();
  for (const auto& [id, slice] : slices_) compute_changed(*slice);
  watch_fd_store();
  return {};
}

ledger::Observed Agent::observed() const {
  ledger::Observed seen;
  seen.boot_id = now().boot_id;
  for (const NodeDevice& d : devices_) seen.devices.push_back(d.device);
  for (const std::string& name : runtime_.state_files()) {
    const auto state = read_state_file(runtime_.read_state_file(name));
    seen.state_files.push_back(
        {name, state && state->boot_id == seen.boot_id ? std::optional(state->record) : std::nullopt});
  }
  return seen;
}

// Carries out each repair in the direction that the ledger's table states.
Outcome<void> Agent::agree(const ledger::Observed& seen) {
  using D = ledger::DriftKind;
  for (const ledger::Drift& d : ledger::find_drift(ledger_, seen, now())) {
    if (d.kind == D::device_too_small) return failure(FailureKind::unavailable, "{}", d.observed);
    if (d.kind == D::device_unknown || d.kind == D::device_differs)
      os::log::info("{}", sentence(d));  // Expected at every first start and after a change of options.
    else
      event(d.name, sentence(d));
    if (d.change)
      if (const auto kept = ledger::post(ledger_, *store_, *d.change); !kept)
        return tl::unexpected(kept.error());
    if (d.kind == D::slice_over || d.kind == D::record_unreadable || d.kind == D::shared_memory_stale) {
      fd_store_.drop(d.name);
      runtime_.remove(d.name);
      if (tree_ && d.kind == D::slice_over)
        if (auto cgroup = Cgroup::make(*tree_, group_, d.name)) cgroup->remove();
    }
  }
  return {};
}

// Maps the control page and the report page of the earlier agent; without them, makes new ones.
bool Agent::adopt_shared_memory(LiveSlice& slice, bool known) {
  auto control = known ? runtime_.adopt_control(slice.name()) : failure(FailureKind::not_found, "");
  if (control) {
    slice.control = std::move(*control);
    fill_control(slice);
    if (auto report = adopt_report(fd_store_.get(slice.name()))) slice.report = std::move(*report);
  } else if (const auto fresh = make_shared_memory(slice); !fresh) {
    os::log::error("{}: {}", slice.name(), fresh.error().sentence);
    return false;
  }
  return true;
}

// Watches the attached processes that live, and releases the charges of those that ended.
void Agent::adopt_attached(LiveSlice& slice) {
  for (unsigned slot = 0; slot < shm::max_processes; ++slot) {
    shm::ControlProcess& entry = slice.control->processes[slot];
    if (entry.pid == 0) continue;
    const os::ProcessId process{static_cast<pid_t>(entry.pid), entry.start_time};
    os::Fd pidfd = os::open_process(process);
    if (pidfd) add_attached(slice, process, slot, std::move(pidfd));
  }
  if (!slice.report.page) recover_report(slice);
  for (unsigned slot = 0; slot < shm::max_processes; ++slot) {
    shm::ControlProcess& entry = slice.control->processes[slot];
    if (entry.pid == 0 || slice.attached.contains({static_cast<pid_t>(entry.pid), entry.start_time}))
      continue;
    if (reclaim_slot(slice, slot)) std::atomic_ref(entry.pid).store(0, std::memory_order_release);
  }
  if (slice.report.page) shm::leave_blocks(slice.report.page->charges, shm::Tag::agent);
}

void Agent::adopt_containers(LiveSlice& slice, const StateFile& state) {
  for (const ContainerIdentity& container : state.containers) {
    Watched process{container.init, os::open_process(container.init)};
    if (!process.pidfd) continue;
    slice.identity.containers.push_back(container);
    slice.containers.push_back(std::move(process));
    watch(slice, slice.containers.back(), &Agent::container_ended);
  }
}

void Agent::watch_adopted(LiveSlice& slice) {
  if (slice.cgroup) watch_cgroup(slice);
  if (!slice.entered && !slice.outlives_processes()) watch(slice, slice.creator, &Agent::creator_ended);
  if (slice.root.pidfd) watch(slice, slice.root, &Agent::root_ended);
  if (slice.supervisor.id) watch(slice, slice.supervisor, &Agent::supervisor_ended);
  if (slice.outlives_processes())
    if (const auto written = announce(slice); !written)
      os::log::error("{}: {}", slice.name(), written.error().sentence);
}

bool Agent::adopt_slice(const ledger::UsageRecord& record) {
  auto made = std::make_unique<LiveSlice>();
  LiveSlice& slice = *made;
  slice.record = record;
  slice.busy_ns = record.busy_ns;
  const auto state = read_state_file(runtime_.read_state_file(record.slice.name));
  const bool known = state && state->boot_id == now().boot_id && state->record.id == record.id;
  std::optional<Cgroup> cgroup;
  if (tree_ && !record.slice.outlives_processes())
    if (auto found = Cgroup::make(*tree_, group_, record.slice.name)) cgroup = std::move(*found);
  const bool lives_on = cgroup && cgroup->populated();
  if (!known && !record.slice.outlives_processes() && !lives_on) return false;

  if (!adopt_shared_memory(slice, known)) return false;
  if (known) {
    slice.command = state->command;
    slice.entered = state->entered;
    slice.creator.id = state->creator;
    slice.root.id = slice.identity.root = state->root;
    slice.supervisor.id = slice.identity.supervisor = state->supervisor;
  } else if (lives_on) {
    // The shared memory was removed while its processes ran. They keep the limits that they have mapped.
    // Their memory is charged to the new pages when the driver reports it.
    slice.entered = true;
    event(record.slice.name,
          "shared memory recreated for the processes in its cgroup, because it was missing");
  }
  if (cgroup && (known ? state->cgroup : lives_on)) {
    slice.identity.cgroup = cgroup->identity();
    slice.cgroup = std::move(*cgroup);
  }
  slices_.emplace(record.id, std::move(made));

  adopt_attached(slice);
  if (known) {
    adopt_containers(slice, *state);
    slice.root.pidfd = os::open_process(slice.root.id);
  }
  const bool waiting = !slice.entered && os::open_process(slice.creator.id);
  if (!slice.outlives_processes() && !waiting && !has_processes(slice)) {
    for (const auto& [process, attached] : slice.attached) loop_.forget(attached.pidfd.get());
    slices_.erase(record.id);
    return false;
  }
  watch_adopted(slice);
  this->write_state(slice);
  event(slice.name(), fmt::format("adopted with {} attached processes", slice.attached.size()));
  return true;
}

// Recovers a report page after the fd store has ended too. Root can open it through a process that has it
// mapped.
void Agent::recover_report(LiveSlice& slice) {
  for (const auto& [process, attached] : slice.attached) {
    const std::string maps = os::read_file(fmt::format("/proc/{}/maps", process.pid), 64 << 20).value_or("");
    const size_t at = maps.find(report_name);
    if (at == std::string::npos) continue;
    const size_t line = maps.rfind('\n', at) + 1;
    const std::string range = maps.substr(line, maps.find(' ', line) - line);
    os::Fd fd(open(fmt::format("/proc/{}/map_files/{}", process.pid, range).c_str(), O_RDWR | O_CLOEXEC));
    if (!fd || !os::alive(attached.pidfd)) continue;
    if (auto report = adopt_report(std::move(fd))) {
      slice.report = std::move(*report);
      keep_report(slice);
      event(slice.name(), "report page recovered from one of its processes");
      return;
    }
  }
  if (slice.attached.empty()) {  // No process has the old page mapped, so a new one loses nothing.
    if (auto report = make_report()) {
      slice.report = std::move(*report);
      keep_report(slice);
    }
    return;
  }
  event(slice.name(),
        "report page lost with the fd store; its processes run on inside their quota, and no process can "
        "attach");
}

void Agent::reach_fd_store() {
  auto fd_store = FdStore::reach(runtime_.path());
  if (!fd_store) {
    os::log::error("{}", fd_store.error().sentence);
    return;
  }
  fd_store_ = std::move(*fd_store);
  for (const auto& [id, slice] : slices_)
    if (slice->report.fd) fd_store_.hold(slice->name(), slice->report.fd);
}

void Agent::watch_fd_store() {
  loop_.watch(fd_store_.fd(), EPOLLIN, [this](uint32_t) {
    loop_.forget(fd_store_.fd());
    os::log::warning("the fd store ended and is started again");
    reach_fd_store();
    watch_fd_store();
  });
}

}  // namespace carve::node
