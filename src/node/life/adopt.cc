#include "node/life/adopt.h"

#include <algorithm>
#include <set>

#include "ledger/reconcile.h"
#include "node/slice/processes.h"
#include "node/slice/protection.h"
#include "node/slots/slot_sockets.h"
#include "os/clock.h"
#include "os/log.h"

namespace carve::node {
namespace {

// Returns whether the record has ended according to the ledger.
bool has_ended(const NodeState& node, const ledger::UsageRecord& record) {
  const auto known = node.books.records({record.id});
  return known && !known->empty() && known->front().to && known->front().from == record.from &&
         known->front().slice.name == record.slice.name;
}

ledger::Observed observed(const NodeState& node) {
  ledger::Observed seen;
  seen.boot_id = stamp_now().boot_id;
  for (const NodeDevice& d : node.devices) seen.devices.push_back(d.device);
  for (const std::string& name : node.pages.state_files()) {
    const auto state = node.pages.read_state(name);
    ledger::StateFileSeen file{.name = name};
    if (state) file.record = state->record;
    if (state && node.ledger().find(name) == nullptr) file.has_ended = has_ended(node, state->record);
    seen.state_files.push_back(std::move(file));
  }
  return seen;
}

// For a ledger that has lost changes, returns the live records whose slices have ended since. Each slice that
// is live in this boot has a state file. If the file was lost too, processes in the slice's cgroup show that
// it is live.
std::set<uint64_t> ended_before(const NodeState& node, const Lifecycle& lifecycle) {
  std::set<uint64_t> out;
  for (const auto& [id, record] : node.ledger().living()) {
    const auto state = node.pages.read_state(record.slice.name);
    if (state ? state->record.id > id : !lifecycle.has_populated_cgroup(record.slice.name)) out.insert(id);
  }
  return out;
}

// Reports that the ledger has lost changes, and records this in the runtime directory until they are
// restored.
void report_behind(NodeState& node, LedgerMark mark) {
  const ledger::Generation& was = mark.generation;
  const ledger::Generation present = node.books.mark().generation;
  const std::string text = fmt::format(
      "ledger: {}; live slices are recorded again from their state files, but usage records that were "
      "written since then are lost",
      was.ledger == present.ledger
          ? fmt::format("its newest changes are lost (it has {} of the {} changes that were written)",
                        present.changes, was.changes)
          : "it is not the ledger in which this boot's slices were recorded");
  os::log::error("{}", text);
  node.events.add({.utc_ns = os::utc_ns(), .slice = "", .text = text});
  mark.is_behind = true;
  node.pages.write_mark(mark);
}

// Carries out each repair in the direction that the ledger's table defines.
Outcome<void> repair(NodeState& node, Lifecycle& lifecycle, const ledger::Observed& seen) {
  using D = ledger::DriftKind;
  for (const ledger::Drift& d : ledger::find_drift(node.ledger(), seen, stamp_now())) {
    if (d.kind == D::device_too_small) return failure(FailureKind::unavailable, "{}", d.observed);
    if (d.kind == D::device_unknown || d.kind == D::device_differs)
      os::log::info("{}", message(d));  // Expected at every first start and after a change of options.
    else
      node.event(d.name, message(d));
    if (d.change)
      if (const auto kept = node.books.post(*d.change); !kept) return tl::unexpected(kept.error());
    if (d.kind == D::slice_over || d.kind == D::record_unreadable || d.kind == D::shared_memory_stale)
      lifecycle.remove_remains(d.name, d.kind == D::slice_over);
  }
  return {};
}

// Returns whether the guaranteed shares of the live slices would fit on their devices under a policy.
bool may_follow(const NodeState& node, Policy policy) {
  for (const auto& [uuid, balance] : node.ledger().balances()) {
    uint64_t promised = 0;
    for (const auto& [id, part] : balance.held) promised += promised_share(policy, part.share).basis_points;
    if (promised > node.most_shares().basis_points) return false;
  }
  return true;
}

// After a boot, slices that outlive their processes follow their devices' policies.
Outcome<void> follow_policies(NodeState& node) {
  for (const auto& [id, slice] : node.slices) {
    ledger::Terms terms = ledger::terms_of(slice->granted());
    terms.policy = node.compute.policies.of(slice->granted().parts.front().device).effective;
    if (terms.policy == slice->granted().policy) continue;
    const auto change = node.ledger().alter(id, terms, stamp_now(), node.most_shares());
    if (!change) return tl::unexpected(change.error());
    if (const auto kept = node.books.post(*change); !kept) return kept;
    slice->record = node.ledger().living().at(id);
    fill_control(node, *slice);
    node.pages.write_state(*slice);
    node.event(slice->name(),
               fmt::format("compute policy {} took effect when the machine booted", text(terms.policy)));
  }
  return {};
}

Outcome<void> open_policies(NodeState& node) {
  const auto policy_of_slices = [&node](const Uuid& uuid) -> std::optional<Policy> {
    const auto balance = node.ledger().balances().find(uuid);
    if (balance == node.ledger().balances().end() || balance->second.held.empty()) return std::nullopt;
    return node.ledger().living().at(balance->second.held.begin()->first).slice.policy;
  };
  Policies::Start start{.path = node.settings.state + "/policy.json",
                        .boot_id = stamp_now().boot_id,
                        .devices = {},
                        .said = node.settings.policy,
                        .otherwise = policy_of_slices,
                        .may_follow = [&node](Policy policy) { return may_follow(node, policy); },
                        .holders = node.policy_holders()};
  for (const NodeDevice& d : node.devices) start.devices.push_back(d.device.uuid);
  const Policies::Opened opened = node.compute.policies.open(start);
  if (!opened.trouble.empty()) node.event("", opened.trouble);
  return opened.booted && !node.settings.policy_per_slice ? follow_policies(node) : Outcome<void>{};
}

}  // namespace

Outcome<void> adopt_slices(NodeState& node, Lifecycle& lifecycle) {
  if (const auto loaded = node.books.load(); !loaded) return loaded;
  // First handle the drift that is visible without a scan of processes, then adopt each live slice, then
  // handle the rest.
  const std::optional<LedgerMark> mark = node.pages.read_mark();
  const bool is_behind = node.books.is_behind(mark);
  if (is_behind) report_behind(node, *mark);
  ledger::Observed seen = observed(node);
  seen.is_behind = is_behind;
  if (is_behind) seen.ended_before = ended_before(node, lifecycle);
  if (const auto done = repair(node, lifecycle, seen); !done) return done;
  std::set<uint64_t> with_processes;
  std::vector<ledger::UsageRecord> records;
  for (const auto& [id, record] : node.ledger().living()) records.push_back(record);
  for (const ledger::UsageRecord& record : records) {
    auto state = node.pages.read_state(record.slice.name);
    if (state && state->record.id != record.id) state.reset();
    if (lifecycle.adopt(record, state)) with_processes.insert(record.id);
  }
  seen = observed(node);
  seen.has_processes = std::move(with_processes);
  if (const auto done = repair(node, lifecycle, seen); !done) return done;
  if (const auto done = node.books.begin_marks(mark, [&node](const auto& m) { node.pages.write_mark(m); });
      !done)
    return done;
  if (const auto done = open_policies(node); !done) return done;
  for (const auto& [id, slice] : node.slices) arbitrate(node, slice->granted());
  node.pages.watch_fd_store(node.loop, node.slices);
  return {};
}

bool Lifecycle::has_populated_cgroup(const std::string& name) const {
  const auto found = open_cgroup(name);
  return found && found->populated();
}

bool Lifecycle::adopt(const ledger::UsageRecord& record, const std::optional<StateFile>& state) {
  std::optional<Cgroup> cgroup;
  if (!record.slice.outlives_processes() || (state && state->cgroup))
    if (auto found = open_cgroup(record.slice.name)) cgroup = std::move(*found);
  const bool lives_on = cgroup && cgroup->populated();
  if (!state && !record.slice.outlives_processes() && !lives_on) return false;

  auto made = std::make_unique<LiveSlice>();
  made->record = record;
  made->busy_ns = record.busy_ns;
  const bool pages_found = state && node_.pages.adopt(*made);
  if (!pages_found)
    if (const auto fresh = node_.pages.make(*made); !fresh) {
      os::log::error("{}: {}", record.slice.name, fresh.error().message);
      return false;
    }
  fill_control(node_, *made);
  if (state) {
    made->command = state->command;
    made->entered = state->entered;
    made->creator.id = state->creator;
    made->root.id = made->identity.root = state->root;
    made->supervisor.id = made->identity.supervisor = state->supervisor;
    if (record.slice.holder.pod) made->slot = state->slot;
    made->claim_pods = state->claim_pods;
    made->released = state->released;
    if (made->released) made->why = "its pod or claim is gone";
    made->is_kept = state->is_kept;
    made->deadline = state->deadline;
  } else if (lives_on) {
    // The shared memory was removed while its processes were running. They keep the limits that they have
    // mapped. Their memory is charged to the new pages when the driver reports it.
    made->entered = true;
    node_.event(record.slice.name,
                "shared memory recreated for the processes in its cgroup, because it was missing");
  }
  if (cgroup && (state ? state->cgroup : lives_on)) {
    made->identity.cgroup = cgroup->identity();
    made->cgroup = std::move(*cgroup);
  }
  LiveSlice& slice = node_.slices.add(std::move(made));
  watch_adopted(slice, state);
  if (node_.slices.find(record.id) == nullptr) return false;
  protect(node_, slice);
  node_.pages.write_state(slice);
  node_.event(slice.name(), fmt::format("adopted, with {} attached processes", slice.attached.size()));
  node_.loop.after(0, [this, id = slice.id()] {
    if (LiveSlice* const living = node_.slices.find(id)) ending_.watch_deadline(*living);
  });
  return true;
}

// Watches the live processes of an adopted slice. If there are none, removes the slice from the registry.
void Lifecycle::watch_adopted(LiveSlice& slice, const std::optional<StateFile>& state) {
  attachments_.adopt(slice);
  if (!slice.report.page) {
    const Recovery found = node_.pages.recover_report(slice, *node_.inspector);
    if (found == Recovery::from_process)
      node_.event(slice.name(), "report page recovered from one of its processes");
    if (found == Recovery::lost)
      node_.event(slice.name(),
                  "report page lost with the fd store; the slice's processes keep running within their "
                  "quota, but no further process can attach");
  }
  attachments_.reclaim_ended(slice);
  if (state) {
    for (const ContainerIdentity& container : state->containers) {
      Watched process{container.init, os::open_process(container.init)};
      if (!process.pidfd) continue;
      slice.identity.containers.push_back(container);
      slice.containers.push_back(std::move(process));
      ending_.watch_newest_container(slice);
    }
    slice.root.pidfd = os::open_process(slice.root.id);
  }
  if (slice.is_kept) slice.supervisor.pidfd = os::open_process(slice.supervisor.id);
  const bool waiting = slice.is_kept_alive() || (!slice.entered && os::open_process(slice.creator.id));
  if (!slice.outlives_processes() && !waiting && !has_processes(slice)) {
    for (const auto& [process, attached] : slice.attached) node_.loop.forget(attached.pidfd.get());
    node_.slices.erase(slice.id());
    return;
  }
  if (slice.cgroup) ending_.watch_cgroup(slice);
  if (!slice.entered && !slice.is_kept && !slice.outlives_processes()) ending_.watch_creator(slice);
  if (slice.root.pidfd) ending_.watch_root(slice);
  if (slice.supervisor.id) ending_.watch_supervisor(slice);
  if (slice.released) node_.loop.after(0, [this, id = slice.id()] { ending_.end_if_empty(id); });
  // The file of a slot may have been removed because kubelet gave the slot to another container; only a grant
  // may write it.
  if (slice.outlives_processes() && !slice.slot && !slice.released)
    if (const auto written = announce(node_, slice); !written)
      os::log::error("{}: {}", slice.name(), written.error().message);
}

void Lifecycle::remove_remains(const std::string& name, bool cgroup) {
  node_.pages.remove(name);
  if (!cgroup) return;
  if (auto left = open_cgroup(name)) left->remove();
}

}  // namespace carve::node
