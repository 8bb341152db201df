#include "node/node_agent.h"

#include <algorithm>

#include "node/cdi/cdi.h"
#include "node/life/update.h"
#include "node/placement/placement.h"
#include "node/slice/processes.h"
#include "os/clock.h"

namespace carve::node {
namespace {

constexpr int64_t max_inspection_age_ns = os::second;  // A process may execute another program.

PlacementInput placement_input(const NodeState& node) {
  return {node.settings, node.devices, node.ledger(), node.compute.policies, node.limits.all()};
}

Outcome<LiveSlice*> living(const NodeState& node, SliceId id) {
  LiveSlice* const slice = node.slices.find(id);
  if (slice == nullptr) return failure(FailureKind::not_found, "the slice has ended");
  return slice;
}

SliceView view_of(const ledger::UsageRecord& ended) {
  SliceView out;
  out.record = ended;
  out.state = SliceState::ended;
  out.why = ended.end_reason;
  return out;
}

unsigned polled_processes(const Slices& slices) {
  unsigned out = 0;
  for (const auto& [id, slice] : slices)
    for (const auto& [process, attached] : slice->attached)
      out += slice->report.page && slice->report.page->work.process[attached.slot].fence_kind.load() ==
                                       static_cast<uint32_t>(shm::FenceKind::events);
  return out;
}

}  // namespace

SliceView NodeAgent::shown(const LiveSlice& slice, bool with_processes) const {
  SliceView out = view_of(slice, with_processes ? node_.inspector.get() : nullptr);
  out.memory = node_.guard->enforcement_of(slice.id());
  return out;
}

Outcome<SliceView> NodeAgent::grant(const Request& request, const os::ProcessId& creator,
                                    const Viewer& viewer) {
  const auto slice = lifecycle_.grant(request, creator, viewer);
  if (!slice) return tl::unexpected(slice.error());
  return shown(**slice);
}

place::Answer NodeAgent::explain(const Request& request, const Viewer& viewer) const {
  return node::explain(placement_input(node_), request, viewer);
}

ConsolidationView NodeAgent::plan_consolidation(unsigned devices, const Viewer& viewer) const {
  return node::plan_consolidation(placement_input(node_), devices, viewer);
}

Outcome<Entry> NodeAgent::enter(SliceId id, os::Peer peer, const EnterRequest& request) {
  const auto slice = living(node_, id);
  if (!slice) return tl::unexpected(slice.error());
  return lifecycle_.enter(**slice, std::move(peer), request);
}

Outcome<void> NodeAgent::supervise(SliceId id, os::Peer peer, const api::Supervision& supervision) {
  const auto slice = living(node_, id);
  if (!slice) return tl::unexpected(slice.error());
  return lifecycle_.supervise(**slice, std::move(peer), supervision);
}

Outcome<void> NodeAgent::limit_time(SliceId id, const api::TimeLimit& limit, const std::string& by) {
  const auto slice = living(node_, id);
  if (!slice) return tl::unexpected(slice.error());
  return lifecycle_.limit_time(**slice, limit, by);
}

Outcome<api::TimeLimit> NodeAgent::time_limit_of(SliceId id) const {
  const auto slice = living(node_, id);
  if (!slice) return tl::unexpected(slice.error());
  const auto& deadline = (*slice)->deadline;
  if (!deadline) return api::TimeLimit{};
  const int64_t left_ns = std::max<int64_t>(deadline->at_ns - os::monotonic_ns(), 0);
  return api::TimeLimit{
      .seconds = deadline->limit_seconds,
      .grace_seconds = deadline->grace_seconds,
      .left_seconds = deadline->warned_ns != 0 ? 0 : static_cast<uint64_t>(left_ns / os::second)};
}

Outcome<void> NodeAgent::add_container(SliceId id, pid_t init, const std::string& container) {
  const auto slice = living(node_, id);
  if (!slice) return tl::unexpected(slice.error());
  return lifecycle_.add_container(**slice, init, container);
}

Outcome<void> NodeAgent::refuse_container(SliceId id, pid_t init, const std::string& message) {
  const auto slice = living(node_, id);
  if (!slice) return tl::unexpected(slice.error());
  return lifecycle_.refuse_container(**slice, init, message);
}

Outcome<SliceView> NodeAgent::update(SliceId id, const TermsUpdate& asked, const std::string& by) {
  const auto slice = living(node_, id);
  if (!slice) return tl::unexpected(slice.error());
  if (const auto done = update_terms(node_, **slice, asked, by); !done) return tl::unexpected(done.error());
  return shown(**slice);
}

Outcome<void> NodeAgent::set_policy(Policy policy, const std::string& by) {
  if (const auto good = check_policy(node_.labels.all(), policy); !good) return good;
  Policies& policies = node_.compute.policies;
  if (policy == policies.desired()) return {};
  const auto done = policies.want(policy, node_.policy_holders());
  if (done) node_.event("", fmt::format("compute policy {} set by {}", text(policy), by));
  return done;
}

Outcome<void> NodeAgent::set_memory_unit(MemoryUnit unit, WhenHeld when_held, const std::string& by) {
  if (const auto good = check_memory_unit(node_.labels.all(), unit); !good) return good;
  KeptSettings& kept = node_.kept_settings;
  if (kept.memory_unit().desired == unit) return {};
  const auto holders = node_.memory_unit_holders();
  if (when_held == WhenHeld::refuse && kept.memory_unit().effective != unit && !holders.empty())
    return failure(FailureKind::failed_precondition,
                   "the memory unit stays {} while slices that were requested in units run: {}; stop these "
                   "slices, or use --when-free",
                   text(kept.memory_unit().effective), fmt::join(holders, ", "));
  const auto done = kept.want(unit, holders);
  if (done) node_.event("", fmt::format("memory unit {} set by {}", text(unit), by));
  return done;
}

Outcome<void> NodeAgent::refuse_grants(const std::string& message, const std::string& by) {
  if (node_.kept_settings.grants_refused() == message) return {};
  const auto done = node_.kept_settings.refuse_grants(message);
  if (done)
    node_.event("", message.empty() ? fmt::format("new slices allowed by {}", by)
                                    : fmt::format("new slices refused by {}: {}", by, message));
  return done;
}

Outcome<void> NodeAgent::set_label(const std::string& key, const std::optional<std::string>& value,
                                   const std::string& by) {
  const auto before = node_.labels.all();
  const LabelMeaning meaning = meaning_of(key);
  if (const auto done = node_.labels.change(key, value); !done) return done;
  if (node_.labels.all() == before) return {};
  if (meaning == LabelMeaning::memory_unit) {
    const MemoryUnit unit = node_.labels.memory_unit().value_or(MemoryUnit::gib);
    if (const auto done = set_memory_unit(unit, WhenHeld::refuse, by); !done) {
      const auto former = before.find(key);
      (void)node_.labels.change(key, former == before.end() ? std::nullopt : std::optional(former->second));
      return done;
    }
  }
  const char* const effect =
      meaning == LabelMeaning::placement
          ? "; the agent only shows the label, and a controller or Kubernetes applies it"
          : "";
  node_.event("", value ? fmt::format("label {}={} set by {}{}", key, *value, by, effect)
                        : fmt::format("label {} removed by {}", key, by));
  return meaning == LabelMeaning::policy && value ? set_policy(*node_.labels.policy(), by) : Outcome<void>{};
}

Outcome<api::Limit> NodeAgent::set_limit(const api::LimitChange& change, const std::string& by) {
  auto done = node_.limits.change(change);
  if (done)
    node_.event("", fmt::format("limit of {} set by {}: {}", holder_text(*done), by, amounts_text(*done)));
  return done;
}

Outcome<api::Limit> NodeAgent::remove_limit(const std::string& key, const std::string& by) {
  auto done = node_.limits.remove(key);
  if (done) node_.event("", fmt::format("limit of {} removed by {}", holder_text(*done), by));
  return done;
}

api::LimitList NodeAgent::limits() const {
  api::LimitList out;
  for (const api::Limit& limit : node_.limits.all()) {
    api::LimitView& view = out.items.emplace_back(api::LimitView{limit, {}});
    if (limit.uid) view.held = held_by_user(node_.ledger(), *limit.uid).amounts();
    if (!limit.account.empty()) view.held = held_by_account(node_.ledger(), limit.account).amounts();
  }
  return out;
}

api::LimitList NodeAgent::limits_of(uint32_t uid, const std::string& account) const {
  const auto all = node_.limits.all();
  api::LimitList out;
  if (const api::Limit* limit = limit_of_user(all, uid))
    out.items.push_back({*limit, held_by_user(node_.ledger(), uid).amounts()});
  if (const api::Limit* limit = limit_of_account(all, account))
    out.items.push_back({*limit, held_by_account(node_.ledger(), account).amounts()});
  return out;
}

Outcome<SliceView> NodeAgent::stop(SliceId id, const std::string& why) {
  const auto slice = living(node_, id);
  if (!slice) return tl::unexpected(slice.error());
  lifecycle_.ending().stop(**slice, why);
  if (const LiveSlice* stopping = node_.slices.find(id)) return shown(*stopping);
  return view_of(node_.ledger().ended().back());
}

Outcome<SliceView> NodeAgent::release(SliceId id, const std::string& why) {
  const auto slice = living(node_, id);
  if (!slice) return tl::unexpected(slice.error());
  lifecycle_.ending().release(**slice, why);
  if (const LiveSlice* remaining = node_.slices.find(id)) return shown(*remaining);
  return view_of(node_.ledger().ended().back());
}

void NodeAgent::withdraw(ContainerSlot slot) { remove_cdi(node_.settings.cdi_dir, slot); }

Outcome<void> NodeAgent::set_claim_pods(SliceId id, std::vector<ClaimPod> pods) {
  const auto slice = living(node_, id);
  if (!slice) return tl::unexpected(slice.error());
  return lifecycle_.set_claim_pods(**slice, std::move(pods));
}

api::SlotFiles NodeAgent::files_of(ContainerSlot slot) const {
  std::vector<unsigned> minors;
  if (node_.settings.paths.sim_set.empty())
    for (const NodeDevice& device : node_.devices) minors.push_back(device.minor);
  return slot_files(slot, node_.settings.socket, node_.settings.paths, minors);
}

Outcome<SliceView> NodeAgent::thaw(SliceId id) {
  const auto slice = living(node_, id);
  if (!slice) return tl::unexpected(slice.error());
  if (!(*slice)->frozen)
    return failure(FailureKind::failed_precondition, "slice {} is not frozen", (*slice)->name());
  node::thaw(**slice);
  node_.event((*slice)->name(), "thawed");
  return shown(**slice);
}

std::optional<shm::AttachReply> NodeAgent::attach(const os::Peer& peer,
                                                  const std::optional<AttachPoint>& through,
                                                  const shm::AttachRequest& request,
                                                  std::vector<os::Fd>& descriptors,
                                                  const std::function<void()>& again) {
  if (through) return lifecycle_.attach(*through, peer, request, descriptors, again);
  return lifecycle_.attachments().attach(peer, request, descriptors, again);
}

bool NodeAgent::inspect_processes(const std::string& name, const std::function<void()>& done) {
  const LiveSlice* const slice = node_.slices.find(name);
  if (slice == nullptr) return false;
  const int64_t now = os::monotonic_ns();
  const auto left = std::make_shared<size_t>(0);
  for (const pid_t pid : pids_of(*slice)) {
    const auto stat = os::stat_of(pid);
    if (!stat) continue;
    const Inspection* const known = node_.inspector->known(stat->id);
    if (known != nullptr && now - known->at_ns < max_inspection_age_ns &&
        Inspector::shows_its_program(*known))
      continue;
    ++*left;
    node_.inspector->inspect(stat->id, slice->id(), [left, done](const Inspection&) {
      if (--*left == 0) done();
    });
  }
  return *left != 0;
}

std::vector<SliceView> NodeAgent::slices(const SliceQuery& query) const {
  std::vector<SliceView> out;
  for (const auto& [id, slice] : node_.slices)
    if (!query.name || slice->name() == *query.name) out.push_back(shown(*slice, query.processes));
  if (query.ended)
    for (const ledger::UsageRecord& record : node_.ledger().ended())
      if (!query.name || record.slice.name == *query.name) out.push_back(view_of(record));
  return out;
}

std::optional<SliceView> NodeAgent::slice_of(pid_t pid) const {
  const LiveSlice* slice = node_.slices.slice_of(pid);
  return slice != nullptr ? std::optional(shown(*slice, false)) : std::nullopt;
}

std::vector<DeviceView> NodeAgent::devices() const {
  std::vector<DeviceView> out;
  for (const NodeDevice& d : node_.devices) {
    DeviceView& view = out.emplace_back();
    view.device = d.device;
    view.health = d.health();
    view.context = d.context;
    view.context_trouble = d.context_trouble;
    view.used = d.sample.used;
    view.used_in_slices = d.used_in_slices;
    view.used_outside_slices = d.used_outside_slices;
    view.utilization_percent = d.sample.utilization_percent;
    view.pci_id = d.pci_id;
    view.readings = d.sample.readings;
    view.mode = d.sample.mode;
    view.processes_hidden = d.sample.processes_hidden;
    view.ended_trouble = d.sample.accounting.trouble;
    view.xids = listed(d.xids);
    view.last_xid = d.last_xid;
    view.unmanaged_processes = d.unmanaged_processes;
    view.policy = node_.compute.policies.of(d.device.uuid);
    view.compute = node_.compute.figures(d.device.uuid);
    if (view.compute) name_neighbours(*view.compute);
    const auto balance = node_.ledger().balances().find(d.device.uuid);
    if (balance == node_.ledger().balances().end()) continue;
    view.free = balance->second.free;
    for (const auto& [id, part] : balance->second.held) view.slices.push_back(id);
  }
  for (const auto& [uuid, balance] : node_.ledger().balances())
    if (node_.device(uuid) == nullptr) add_lost(out, balance);
  return out;
}

// Sets the names of the slices for which others waited. They may have ended in the last minute.
void NodeAgent::name_neighbours(DeviceCompute& compute) const {
  for (SliceCompute& slice : compute.slices)
    for (WaitFor& wait : slice.waits_60s) {
      const LiveSlice* const live = node_.slices.find(wait.slice);
      const auto& ended = node_.ledger().ended();
      const auto found = live != nullptr
                             ? ended.rend()
                             : std::find_if(ended.rbegin(), ended.rend(),
                                            [&](const ledger::UsageRecord& r) { return r.id == wait.slice; });
      const ledger::UsageRecord* const record = live != nullptr         ? &live->record
                                                : found != ended.rend() ? &*found
                                                                        : nullptr;
      wait.name = "an ended slice";
      if (record == nullptr) continue;
      wait.name = record->slice.name;
      wait.owner = record->slice.owner;
    }
}

// Adds a device that only the ledger knows, if slices hold a part of it or the driver reports it as lost.
// Devices that were removed from the machine are not added.
void NodeAgent::add_lost(std::vector<DeviceView>& devices, const ledger::Balance& balance) const {
  const unsigned index = balance.device.index;
  if (balance.held.empty() &&
      (std::ranges::find(node_.lost_indexes, index) == node_.lost_indexes.end() ||
       std::ranges::any_of(devices, [&](const DeviceView& d) { return d.device.index == index; })))
    return;
  DeviceView& view = devices.emplace_back();
  view.device = balance.device;
  view.health = {HealthState::lost,
                 "the driver has not reported the device since the agent started; reset the device, or "
                 "restart the node"};
  view.is_reported = false;
  view.policy = node_.compute.policies.of(balance.device.uuid);
  view.free = balance.free;
  for (const auto& [id, part] : balance.held) view.slices.push_back(id);
}

NodeView NodeAgent::node() const {
  const Settings& settings = node_.settings;
  const RuntimeDir& runtime = node_.pages.runtime();
  NodeView out;
  out.socket = settings.socket;
  out.state = settings.state;
  out.cdi_dir = settings.cdi_dir;
  out.preload = settings.paths.preload;
  out.shims = settings.paths.shims;
  out.simulated = settings.paths.sim_spec;
  out.host_name = settings.host_name;
  out.strategy = settings.strategy;
  out.bookkeeper = settings.bookkeeper;
  out.memory_unit = node_.kept_settings.memory_unit();
  out.grants_refused = node_.kept_settings.grants_refused();
  out.starting = os::monotonic_ns() < settings.ready_at_ns;
  out.spill_limit = spill_limit(settings);
  out.spill_granted = spill_granted(node_.ledger());
  out.labels = node_.labels.all();
  if (settings.topology) out.links = settings.topology->lines(static_cast<unsigned>(node_.devices.size()));
  out.policy_per_slice = settings.policy_per_slice;
  out.admit_best_effort = settings.admit_best_effort;
  out.dcgm_names = settings.dcgm_names;
  out.overcommit_compute = settings.overcommit_compute;
  out.contexts_in_slice = settings.contexts_in_slice;
  out.audit = settings.audit;
  out.over_quota = settings.over_quota;
  out.policy = node_.compute.policies.desired();
  out.samples = node_.samples;
  out.sample_took_ns = node_.sample_took_ns;
  out.longest_turn_ns = node_.loop.turns().longest_ns.load();
  if (node_.last_sample_ns != 0) out.sample_age_ns = os::monotonic_ns() - node_.last_sample_ns;
  out.runtime_dir = runtime.path();
  out.runtime_in_memory = runtime.in_memory();
  out.limits_sealed = runtime.sealed();
  out.cgroup_trouble = lifecycle_.cgroup_trouble();
  out.kernel_log = settings.kernel_log;
  out.kernel_log_trouble = node_.kernel_log_trouble;
  out.guard = node_.guard->status();
  out.process_lists_trouble = node_.process_lists_trouble;
  out.polled_processes = polled_processes(node_.slices);
  return out;
}

Outcome<std::vector<ledger::UsageRecord>> NodeAgent::usage_after(uint64_t id, size_t most) const {
  return node_.books.records_after(id, most);
}

Outcome<std::vector<ledger::UsageRecord>> NodeAgent::usage_of(const std::vector<uint64_t>& ids) const {
  return node_.books.records(ids);
}

std::vector<TraceSpan> NodeAgent::trace(int64_t since) const { return node_.compute.trace(since); }

}  // namespace carve::node
