#include "node/agent/agent.h"

#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "node/agent/visible.h"
#include "os/clock.h"
#include "os/log.h"

namespace carve::node {
namespace {

using K = FailureKind;

constexpr size_t max_node_slices = 256;

std::string hash_of(const std::string& text) {
  uint32_t hash = 2166136261u;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return fmt::format("{:08x}", hash);
}

template <size_t N>
void put(char (&field)[N], const std::string& text) {
  const size_t length = std::min(text.size(), N - 1);
  memcpy(field, text.data(), length);
  memset(field + length, 0, N - length);
}

}  // namespace

Agent::Agent(os::Loop& loop, Settings settings, std::vector<NodeDevice> devices, RuntimeDir runtime,
             FdStore fd_store, std::unique_ptr<ledger::Store> store)
    : loop_(loop),
      settings_(std::move(settings)),
      devices_(std::move(devices)),
      runtime_(std::move(runtime)),
      fd_store_(std::move(fd_store)),
      store_(std::move(store)),
      tree_(find_cgroup_tree(os::read_file("/proc/self/mountinfo").value_or(""))),
      group_("carve-" + hash_of(settings_.socket)),
      events_(static_cast<uint64_t>(os::utc_ns())) {
  if (!tree_) {
    cgroup_trouble_ = "no cgroup v2 tree is mounted";
  } else if (auto probe = Cgroup::make(*tree_, group_, "probe-" + std::to_string(getpid())); !probe) {
    cgroup_trouble_ = probe.error().sentence;
  } else {
    probe->remove();
  }
}

ledger::Stamp Agent::now() const {
  static const std::string boot = os::boot_id();
  return {os::utc_ns(), boot, os::monotonic_ns()};
}

void Agent::event(const std::string& slice, std::string text) {
  os::log::info("{}{}{}", slice, slice.empty() ? "" : ": ", text);
  std::optional<uint32_t> owner;
  for (const auto& [id, record] : ledger_.living())
    if (record.slice.name == slice) owner = record.slice.owner;
  for (const auto& [id, live] : slices_)
    if (live->name() == slice) owner = live->record.slice.owner;
  events_.add({os::utc_ns(), slice, std::move(text), owner});
}

const NodeDevice* Agent::device(const Uuid& uuid) const {
  const auto found =
      std::ranges::find(devices_, uuid, [](const NodeDevice& d) -> const Uuid& { return d.device.uuid; });
  return found == devices_.end() ? nullptr : &*found;
}

LiveSlice* Agent::find(const std::string& name) {
  for (const auto& [id, slice] : slices_)
    if (slice->name() == name) return slice.get();
  return nullptr;
}

LiveSlice* Agent::slice_of(pid_t pid) {
  // A process stays in the slice in which it first attached.
  if (const auto stat = os::stat_of(pid))
    for (const auto& [id, slice] : slices_)
      if (slice->attached.contains(stat->id)) return slice.get();
  std::vector<const SliceIdentity*> identities;
  std::vector<LiveSlice*> owners;
  for (const auto& [id, slice] : slices_) {
    identities.push_back(&slice->identity);
    owners.push_back(slice.get());
  }
  const auto found = node::slice_of(pid, identities);
  return found ? owners[*found] : nullptr;
}

std::vector<place::DeviceSnapshot> Agent::snapshot() const {
  std::vector<place::DeviceSnapshot> out;
  for (const NodeDevice& d : devices_) {
    place::DeviceSnapshot one;
    one.device = d.device;
    one.context = settings_.contexts_in_slice ? d.context : Bytes{};
    one.trouble = d.sample.health.reason;
    if (const auto balance = ledger_.balances().find(d.device.uuid); balance != ledger_.balances().end()) {
      one.free = balance->second.free;
      one.free_share = balance->second.free_share;
      for (const auto& [id, part] : balance->second.held) {
        const Slice& granted = ledger_.living().at(id).slice;
        ++one.slices;
        one.isolated += granted.isolation != Isolation::none;
        one.exclusive |= granted.exclusive;
        one.shared_out |= granted.shares_compute() && !settings_.admit_best_effort;
      }
    }
    if (settings_.overcommit_compute) one.free_share = whole_device;
    if (!settings_.policy_per_slice) one.policy = policies_.of(d.device.uuid).effective;
    out.push_back(std::move(one));
  }
  return out;
}

// Returns the slices with their positions, for the sentence that says what would have to move. Names of other
// users' slices are hidden from the viewer.
std::vector<place::PlacedSlice> Agent::placed_slices(const Viewer& viewer) const {
  std::vector<place::PlacedSlice> placed_slices;
  for (const auto& [id, record] : ledger_.living()) {
    const Slice& granted = record.slice;
    place::PlacedSlice r{viewer.sees(granted.owner) ? granted.name : "another user's slice",
                         {},
                         granted.parts.front().memory,
                         granted.parts.front().share,
                         granted.exclusive,
                         granted.isolation != Isolation::none,
                         !granted.shares_compute() && !granted.exclusive,
                         settings_.policy_per_slice ? std::nullopt : std::optional(granted.policy)};
    if (granted.owner == viewer.uid)
      r.application = granted.application;  // Applications of different users differ.
    for (const SlicePart& part : granted.parts) {
      const auto d =
          std::ranges::find(devices_, part.device, [](const NodeDevice& n) { return n.device.uuid; });
      if (d != devices_.end()) r.devices.push_back(static_cast<size_t>(d - devices_.begin()));
    }
    if (r.devices.size() == granted.parts.size()) placed_slices.push_back(std::move(r));
  }
  return placed_slices;
}

place::Answer Agent::explain(const Request& request, const Viewer& viewer) const {
  const std::vector<place::DeviceSnapshot> all = snapshot();
  const std::vector<place::PlacedSlice> who = placed_slices(viewer);
  const Strategy strategy = request.strategy.value_or(settings_.strategy);
  const place::Topology* links = settings_.topology ? &*settings_.topology : nullptr;
  const auto answer_to = [&](const Request& r) { return place::place(all, r, strategy, who, links); };
  place::Answer answer = answer_to(request);
  if (!answer.placement || request.policy || settings_.policy_per_slice) return answer;
  // A request without a policy takes its device's policy. All parts of one slice follow one policy. While
  // some devices have changed their policy and others have not, all parts go to devices of one policy.
  const auto policy_of = [&](size_t i) { return *all[i].policy; };
  const auto& chosen = answer.placement->devices;
  if (std::ranges::all_of(chosen, [&](size_t i) { return policy_of(i) == policy_of(chosen[0]); }))
    return answer;
  std::vector<Policy> policies{policies_.desired()};
  for (const place::DeviceSnapshot& one : all) policies.push_back(*one.policy);
  for (const Policy policy : policies) {
    Request bound = request;
    bound.policy = policy;
    answer = answer_to(bound);
    if (answer.placement) break;
  }
  return answer;
}

place::Plan Agent::plan_consolidation(unsigned devices, const Viewer& viewer,
                                      std::vector<place::PlacedSlice>& who) const {
  who = placed_slices(viewer);
  return place::plan(snapshot(), settings_.strategy, who, devices,
                     settings_.topology ? &*settings_.topology : nullptr);
}

Policies::Holders Agent::policy_holders() const {
  return [this](const Uuid& uuid) {
    std::vector<std::string> names;
    if (const auto balance = ledger_.balances().find(uuid); balance != ledger_.balances().end())
      for (const auto& [id, part] : balance->second.held) names.push_back(ledger_.living().at(id).slice.name);
    return names;
  };
}

// Called after the ledger is read and the slices are adopted.
void Agent::open_policies() {
  std::vector<Uuid> uuids;
  for (const NodeDevice& d : devices_) uuids.push_back(d.device.uuid);
  const auto lived_under = [this](const Uuid& uuid) -> std::optional<Policy> {
    const auto balance = ledger_.balances().find(uuid);
    if (balance == ledger_.balances().end() || balance->second.held.empty()) return std::nullopt;
    return ledger_.living().at(balance->second.held.begin()->first).slice.policy;
  };
  std::string trouble;
  policies_.open(settings_.state + "/policy.json", uuids, settings_.policy, lived_under, policy_holders(),
                 trouble);
  if (!trouble.empty()) event("", trouble);
}

Outcome<void> Agent::want_policy(Policy policy, const std::string& by) {
  if (policy == policies_.desired()) return {};
  const auto done = policies_.want(policy, policy_holders());
  if (done) event("", fmt::format("compute policy {} set by {}", text(policy), by));
  return done;
}

// The rules of this node that a request must keep, whatever is free.
Outcome<void> Agent::admissible(const Request& request) const {
  if (!request.name.empty() && ledger_.find(request.name) != nullptr)
    return failure(K::already_exists,
                   "the name '{}' is taken by a running slice; choose another name, or stop that slice",
                   request.name);
  if (slices_.size() >= max_node_slices)
    return failure(K::insufficient_capacity, "this node has {} slices, which is the limit; stop one",
                   max_node_slices);
  if (request.lifetime == Lifetime::until_deleted &&
      access((settings_.paths.shims + "/libcuda.so.1").c_str(), R_OK) != 0)
    return failure(K::unavailable,
                   "containers need the libraries in {}, which are missing; build or install them",
                   settings_.paths.shims);
  struct sysinfo host {};
  if (sysinfo(&host) == 0 && request.spill.count / host.mem_unit > host.totalram / request.devices)
    return failure(K::invalid_argument,
                   "a spill of {} for each of {} device{} is too much; this node has {} of host memory",
                   text(request.spill).c_str(), request.devices, request.devices == 1 ? "" : "s",
                   text(Bytes{uint64_t{host.totalram} * host.mem_unit}).c_str());
  return {};
}

// Returns the slice as it is granted: what was requested, where it was placed.
Slice Agent::placed(const Request& request, const place::Placement& placement) const {
  Slice granted;
  granted.name = request.name;
  for (uint64_t number = ledger_.next_id(); granted.name.empty() || ledger_.find(granted.name) != nullptr;
       ++number)
    if (request.name.empty()) granted.name = fmt::format("slice-{}", number);
  granted.request_id = request.request_id;
  granted.owner = request.owner;
  granted.exclusive = request.exclusive;
  granted.lifetime = request.lifetime;
  granted.isolation = request.isolated();
  granted.policy =
      request.policy.value_or(policies_.of(devices_[placement.devices.front()].device.uuid).effective);
  granted.latency = request.latency;
  granted.application = request.application;
  granted.account = request.account;
  granted.labels = request.labels;
  granted.memory_units = request.memory_units;
  for (const size_t i : placement.devices) {
    const Device& d = devices_[i].device;
    granted.parts.push_back({d.uuid, request.exclusive ? d.usable() : placement.memory, placement.share,
                             request.spill, d.usable()});
  }
  return granted;
}

// Puts the slice into a cgroup of its own, if the agent can make one.
void Agent::make_cgroup(LiveSlice& slice) {
  if (!has_cgroups()) return;
  auto cgroup = Cgroup::make(*tree_, group_, slice.name());
  if (!cgroup) {
    os::log::warning("{}: identified by its process tree only: {}", slice.name(), cgroup.error().sentence);
    return;
  }
  slice.identity.cgroup = cgroup->identity();
  slice.cgroup = std::move(*cgroup);
  watch_cgroup(slice);
}

Outcome<const LiveSlice*> Agent::grant(const Request& request, const os::ProcessId& creator,
                                       const Viewer& viewer) {
  if (const ledger::UsageRecord* record = ledger_.find_by_request_id(request.owner, request.request_id))
    if (const auto living = slices_.find(record->id); living != slices_.end()) return living->second.get();
  if (const auto good = admissible(request); !good) return tl::unexpected(good.error());
  const place::Answer answer = explain(request, viewer);
  if (!answer.placement) return failure(K::insufficient_capacity, "{}", answer.summary);
  const auto change = ledger_.grant(placed(request, *answer.placement), now(), most_shares());
  if (!change) return tl::unexpected(change.error());
  if (const auto kept = ledger::post(ledger_, *store_, *change); !kept) return tl::unexpected(kept.error());

  // The slice is in the ledger. A failure beyond this point ends it again.
  auto made = std::make_unique<LiveSlice>();
  LiveSlice& slice = *made;
  slice.record = std::get<ledger::Granted>(*change).record;
  const uint64_t id = slice.record.id;
  slices_.emplace(id, std::move(made));
  Outcome<void> ready = make_shared_memory(slice);
  if (ready) compute_changed(slice);
  if (ready && slice.outlives_processes()) ready = announce(slice);
  if (!ready) {
    end(id, "its setup failed:  " + ready.error().sentence);
    return tl::unexpected(ready.error());
  }
  if (!slice.outlives_processes()) {
    make_cgroup(slice);
    slice.creator.id = creator;
    watch(slice, slice.creator, &Agent::creator_ended);
  }
  write_state(slice);
  policies_.settle(policy_holders());
  std::vector<std::string> parts;
  for (const SlicePart& s : slice.record.slice.parts)
    parts.push_back(fmt::format("{} on device {}", text(s.memory).c_str(), device(s.device)->device.index));
  event(slice.name(), fmt::format("granted {}", fmt::join(parts, " and ")));
  return &slice;
}

Outcome<void> Agent::announce(const LiveSlice& slice) const {
  std::vector<unsigned> minors;
  if (settings_.paths.sim_set.empty())
    for (const SlicePart& part : slice.record.slice.parts)
      if (const NodeDevice* d = device(part.device)) minors.push_back(d->minor);
  return write_cdi(settings_.cdi_dir, slice.record.slice, settings_.socket, settings_.paths, minors);
}

Outcome<void> Agent::make_shared_memory(LiveSlice& slice) {
  auto control = runtime_.make_control(slice.name());
  if (!control) return tl::unexpected(control.error());
  auto report = make_report();
  if (!report) return tl::unexpected(report.error());
  slice.control = std::move(*control);
  slice.report = std::move(*report);
  fill_control(slice);
  keep_report(slice);
  return {};
}

void Agent::fill_control(LiveSlice& slice) {
  shm::Control& control = *slice.control;
  put(control.slice, slice.name());
  control.device_count = static_cast<uint32_t>(slice.record.slice.parts.size());
  for (size_t i = 0; i < slice.record.slice.parts.size(); ++i) {
    const SlicePart& part = slice.record.slice.parts[i];
    const NodeDevice* d = device(part.device);
    shm::ControlDevice& out = control.devices[i];
    memcpy(out.uuid, part.device.bytes.data(), sizeof out.uuid);
    std::atomic_ref(out.quota).store(part.memory.count);
    out.spill = part.spill.count;
    out.context_bytes = d != nullptr && settings_.contexts_in_slice ? d->context.count : 0;
    out.share = part.share.basis_points;
    out.policy = static_cast<uint32_t>(slice.record.slice.policy);
    out.memory = slice.limited() ? shm::Memory::limited : shm::Memory::not_limited;
  }
  control.epoch.fetch_add(1, std::memory_order_release);
}

void Agent::keep_report(LiveSlice& slice) {
  if (!slice.report.fd || fd_store_.hold(slice.name(), slice.report.fd)) return;
  reach_fd_store();
}

void Agent::write_state(const LiveSlice& slice) {
  StateFile n;
  n.record = slice.record;
  n.boot_id = now().boot_id;
  n.command = slice.command;
  n.cgroup = slice.cgroup.has_value();
  n.entered = slice.entered;
  n.creator = slice.creator.id;
  n.root = slice.root.id;
  n.supervisor = slice.supervisor.id;
  n.containers = slice.identity.containers;
  if (const auto written = runtime_.write_state_file(slice.name(), write_state_file(n)); !written)
    os::log::error("{}: {}", slice.name(), written.error().sentence);
}

Outcome<std::map<std::string, std::string>> Agent::enter(LiveSlice& slice, os::Peer peer,
                                                         const std::string& command,
                                                         const std::string* visible) {
  if (slice.stopping) return failure(K::failed_precondition, "slice {} is ending", slice.name());
  if (slice.outlives_processes())
    return failure(K::invalid_argument, "slice {} is for containers; start a container with --device {}={}",
                   slice.name(), cdi_kind, slice.name());
  if (slice.cgroup)
    if (const auto moved = slice.cgroup->add(peer.process.pid); !moved) return tl::unexpected(moved.error());
  slice.entered = true;
  if (!slice.root.pidfd || !os::alive(slice.root.pidfd)) {
    if (slice.root.pidfd) loop_.forget(slice.root.pidfd.get());
    slice.root.id = peer.process;
    slice.identity.root = peer.process;
    slice.command = command;
    watch(slice, slice.root, &Agent::root_ended);
    event(slice.name(),
          fmt::format("entered by {} (process {}, uid {})",
                      command.empty() ? "a program" : command.substr(0, 200), peer.process.pid, peer.uid));
  } else {
    slice.descendants.emplace(peer.process, std::move(peer.pidfd));
  }
  write_state(slice);

  const Paths& paths = settings_.paths;
  std::map<std::string, std::string> environment;
  environment["CARVE_SOCKET"] = settings_.socket;
  environment["LD_PRELOAD"] = paths.preload;
  environment["CUDA_VISIBLE_DEVICES"] = environment_devices(slice, visible);
  if (!paths.sim_set.empty()) {
    environment["SIMGPU_DIR"] = paths.sim_set;
    environment["LD_LIBRARY_PATH"] = paths.driver;
  }
  return environment;
}

std::string Agent::environment_devices(const LiveSlice& slice, const std::string* visible) const {
  std::vector<std::string> machine(devices_.size()), granted;
  for (const NodeDevice& d : devices_)
    if (d.device.index < machine.size()) machine[d.device.index] = text(d.device.uuid);
  for (const SlicePart& part : slice.record.slice.parts) granted.push_back(text(part.device));
  const auto list = visible != nullptr ? std::optional<std::string_view>(*visible) : std::nullopt;
  return fmt::format("{}", fmt::join(visible_devices(machine, granted, list), ","));
}

Outcome<void> Agent::supervise(LiveSlice& slice, os::Peer peer) {
  if (slice.outlives_processes())
    return failure(K::invalid_argument, "slice {} is for containers and has no supervisor", slice.name());
  if (slice.supervisor.pidfd && os::alive(slice.supervisor.pidfd))
    return failure(K::failed_precondition, "slice {} already has a supervisor, process {}", slice.name(),
                   slice.supervisor.id.pid);
  if (slice.supervisor.pidfd) loop_.forget(slice.supervisor.pidfd.get());
  slice.supervisor.id = peer.process;
  slice.identity.supervisor = peer.process;
  watch(slice, slice.supervisor, &Agent::supervisor_ended);
  write_state(slice);
  return {};
}

Outcome<void> Agent::add_container(LiveSlice& slice, pid_t init, const std::string& id) {
  if (!slice.outlives_processes())
    return failure(K::invalid_argument,
                   "slice {} is for processes; create one for containers with carve slice create",
                   slice.name());
  const auto stat = os::stat_of(init);
  Watched process;
  if (stat) process.id = stat->id;
  process.pidfd = stat ? os::open_process(stat->id) : os::Fd();
  if (!process.pidfd) return failure(K::not_found, "there is no process {}", init);
  if (const LiveSlice* other = slice_of(init); other != nullptr && other != &slice)
    return failure(K::failed_precondition, "process {} belongs to slice {}", init, other->name());
  ContainerIdentity container;
  container.init = process.id;
  container.cgroups = distinguishing(os::cgroups_of(init), os::cgroups_of(getpid()));
  if (const uint64_t own = os::pid_namespace_of(init); own != os::pid_namespace_of(getpid()))
    container.pid_namespace = own;
  slice.identity.containers.push_back(std::move(container));
  slice.containers.push_back(std::move(process));
  watch(slice, slice.containers.back(), &Agent::container_ended);
  slice.entered = true;
  slice.command = "container " + id.substr(0, 64);
  write_state(slice);
  event(slice.name(), fmt::format("container {} (process {}) started", id.substr(0, 64), init));
  return {};
}

}  // namespace carve::node
