#include "node/life/lifecycle.h"
#include "core/visible_list.h"
#include "node/slice/processes.h"

#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>

#include "node/placement/placement.h"
#include "node/slice/protection.h"
#include "node/slots/slot_sockets.h"
#include "os/clock.h"
#include "os/log.h"
#include "os/user.h"

namespace carve::node {
namespace {

constexpr size_t max_node_slices = 256;

Bytes host_memory() {
  struct sysinfo host {};
  return sysinfo(&host) == 0 ? Bytes{uint64_t{host.totalram} * host.mem_unit} : Bytes{};
}

// Fails if the spill of all live slices would exceed the node's limit.
Outcome<void> check_spill(const NodeState& node, const Request& request) {
  if (request.spill.count == 0) return {};
  const Bytes limit = spill_limit(node.settings);
  if (request.spill.count > limit.count / request.devices)
    return failure(FailureKind::invalid_argument,
                   "a spill of {} for each of {} device{} is too much; all slices together may spill {} of "
                   "the {} of host memory (carved --spill-limit)",
                   text(request.spill), request.devices, request.devices == 1 ? "" : "s", text(limit),
                   text(host_memory()));
  const Bytes granted = spill_granted(node.ledger());
  const uint64_t left = limit.count - std::min(limit.count, granted.count);
  if (request.spill.count * request.devices <= left) return {};
  return failure(FailureKind::insufficient_capacity,
                 "a spill of {} for each of {} device{} does not fit: {} of the {} that may be spilled are "
                 "granted to other slices; request at most {}, or raise carved --spill-limit",
                 text(request.spill), request.devices, request.devices == 1 ? "" : "s", text(granted),
                 text(limit), text(Bytes{left / request.devices}));
}

// Checks the request against this node's rules, regardless of what is free.
Outcome<void> admissible(const NodeState& node, const Request& request) {
  if (!request.name.empty() && node.books.find(request.name) != nullptr)
    return failure(FailureKind::already_exists,
                   "the name '{}' is taken by a running slice; choose another name, or stop that slice",
                   request.name);
  if (node.settings.bookkeeper == Bookkeeper::kubernetes && !request.holder)
    return failure(FailureKind::failed_precondition,
                   "Kubernetes manages the slices of this node; create a pod, or start carved without "
                   "--bookkeeper kubernetes");
  if (!node.kept_settings.grants_refused().empty())
    return failure(FailureKind::failed_precondition, "{}", node.kept_settings.grants_refused());
  if (const int64_t left_ns = node.settings.ready_at_ns - os::monotonic_ns(); left_ns > 0)
    return failure(FailureKind::unavailable,
                   "this node is Starting; try again when it is Running, in about {} s",
                   left_ns / os::second + 1);
  if (node.slices.size() >= max_node_slices)
    return failure(FailureKind::insufficient_capacity,
                   "this node has {} slices, which is the limit; stop one", max_node_slices);
  const std::string& shims = node.settings.paths.shims;
  if (request.lifetime == Lifetime::until_deleted && access((shims + "/libcuda.so.1").c_str(), R_OK) != 0)
    return failure(FailureKind::unavailable,
                   "containers need the libraries in {}, which are missing; build or install them", shims);
  return check_spill(node, request);
}

// Returns the CUDA_VISIBLE_DEVICES of a program in the slice.
std::string visible_devices_of(const NodeState& node, const LiveSlice& slice,
                               const std::optional<std::string>& asked) {
  std::vector<std::string> machine(node.devices.size()), granted;
  for (const NodeDevice& d : node.devices)
    if (d.device.index < machine.size()) machine[d.device.index] = text(d.device.uuid);
  for (const SlicePart& part : slice.granted().parts) granted.push_back(text(part.device));
  const auto list = asked ? std::optional<std::string_view>(*asked) : std::nullopt;
  return fmt::format("{}", fmt::join(visible_devices(machine, granted, list), ","));
}

}  // namespace

Bytes spill_limit(const Settings& settings) {
  return settings.spill_limit.value_or(Bytes{host_memory().count / 2});
}

Bytes spill_granted(const ledger::Ledger& ledger) {
  Bytes out;
  for (const auto& [id, record] : ledger.living())
    for (const SlicePart& part : record.slice.parts) out.count += part.spill.count;
  return out;
}

void fill_control(const NodeState& node, LiveSlice& slice) {
  std::vector<Bytes> contexts;
  for (const SlicePart& part : slice.granted().parts) contexts.push_back(node.context_charged(part.device));
  fill_control(*slice.control, slice.granted(), contexts);
}

Lifecycle::Lifecycle(NodeState& node)
    : node_(node),
      ending_(node),
      attachments_(node, [this](uint64_t id) { ending_.end_if_empty(id); }),
      group_(cgroup_group(node.settings.socket)) {
  node_.cgroups = find_cgroup_tree(os::read_file("/proc/self/mountinfo").value_or(""));
  if (auto probe = open_cgroup("probe-" + std::to_string(getpid())))
    probe->remove();
  else
    cgroup_trouble_ = probe.error().message;
}

Lifecycle::~Lifecycle() {
  if (node_.cgroups)
    rmdir((node_.cgroups->mount + "/" + group_).c_str());  // Fails while the group contains a slice's cgroup.
}

Outcome<Cgroup> Lifecycle::open_cgroup(const std::string& name) const {
  if (!node_.cgroups) return failure(FailureKind::unavailable, "no cgroup v2 tree is mounted");
  return Cgroup::make(*node_.cgroups, group_, name);
}

std::string Lifecycle::parts_in_words(const Slice& granted) const {
  std::vector<std::string> parts;
  for (const SlicePart& s : granted.parts)
    parts.push_back(fmt::format("{} on {}", text(s.memory).c_str(),
                                node_.device(s.device) != nullptr
                                    ? fmt::format("device {}", node_.device(s.device)->device.index)
                                    : text(s.device)));
  return fmt::format("{}", fmt::join(parts, " and "));
}

Outcome<LiveSlice*> Lifecycle::find_by_holder(const Request& request) const {
  const ledger::UsageRecord* record = node_.ledger().find_by_holder(request.holder);
  LiveSlice* const known = record == nullptr ? nullptr : node_.slices.find(record->id);
  if (known == nullptr) return known;
  if (known->stopping)
    return failure(FailureKind::failed_precondition,
                   "{}: the slice '{}' of this holder is ending; try again when the slice has ended",
                   text(request.holder), known->name());
  if (is_granted({node_.settings, node_.devices, node_.ledger(), node_.compute.policies, {}}, request,
                 known->granted()))
    return known;
  return failure(FailureKind::already_exists,
                 "{} already has the slice '{}' with different terms, {}; end that slice first",
                 text(request.holder), known->name(), parts_in_words(known->granted()));
}

Outcome<void> Lifecycle::is_free_slot(const Request& request) const {
  const LiveSlice* const other = request.slot ? node_.slices.find(*request.slot) : nullptr;
  if (other == nullptr || is_same(other->granted().holder, request.holder)) return {};
  return failure(FailureKind::failed_precondition,
                 "slot {} still has the slice '{}' ({}); try again when that slice has ended",
                 text(*request.slot), other->name(), text(other->granted().holder));
}

Outcome<void> Lifecycle::open_again(LiveSlice& slice, const std::optional<ContainerSlot>& slot) {
  if (slice.slot != slot) {
    if (has_processes(slice))
      return failure(FailureKind::failed_precondition, "slice {} still has processes {} slot {}; try again",
                     slice.name(), slice.slot ? "that attached through" : "that attached without a",
                     slice.slot ? text(*slice.slot) : "");
    withdraw(node_, slice);
    close_attach_point(node_, slice);
    slice.slot = slot;
    if (const auto opened = open_attach_point(node_, slice); !opened) return opened;
  }
  slice.released = false;
  node_.pages.write_state(slice);
  return announce(node_, slice);
}

Outcome<LiveSlice*> Lifecycle::grant(const Request& request, const os::ProcessId& creator,
                                     const Viewer& viewer) {
  const ledger::Ledger& ledger = node_.ledger();
  if (const ledger::UsageRecord* record = ledger.find_by_request_id(request.owner, request.request_id))
    if (LiveSlice* known = node_.slices.find(record->id)) return known;
  const auto known = find_by_holder(request);
  if (!known) return known;
  if (const auto good = is_free_slot(request); !good) return tl::unexpected(good.error());
  if (*known != nullptr) {
    if (const auto moved = open_again(**known, request.slot); !moved) return tl::unexpected(moved.error());
    return known;
  }
  if (const auto good = admissible(node_, request); !good) return tl::unexpected(good.error());
  const PlacementInput in{node_.settings, node_.devices, ledger, node_.compute.policies, node_.limits.all()};
  const place::Answer answer = explain(in, request, viewer);
  if (!answer.placement)
    return failure(answer.is_lasting ? FailureKind::failed_precondition : FailureKind::insufficient_capacity,
                   "{}", answer.summary);
  const auto change =
      ledger.grant(granted_slice(in, request, *answer.placement), stamp_now(), node_.most_shares());
  if (!change) return tl::unexpected(change.error());
  if (const auto kept = node_.books.post(*change); !kept) return tl::unexpected(kept.error());

  // The slice is now in the ledger. A failure beyond this point ends it again.
  auto made = std::make_unique<LiveSlice>();
  made->record = std::get<ledger::Granted>(*change).record;
  made->slot = request.slot;
  LiveSlice& slice = node_.slices.add(std::move(made));
  if (const auto ready = set_up(slice, creator); !ready) {
    ending_.end(slice.id(), "its setup failed: " + ready.error().message);
    return tl::unexpected(ready.error());
  }
  node_.compute.policies.settle(node_.policy_holders());
  node_.kept_settings.settle(node_.memory_unit_holders());
  node_.event(slice.name(), fmt::format("granted {}{}{}", parts_in_words(slice.granted()),
                                        request.holder ? " for " : "", text(request.holder)));
  return &slice;
}

Outcome<void> Lifecycle::set_up(LiveSlice& slice, const os::ProcessId& creator) {
  if (const auto made = node_.pages.make(slice); !made) return made;
  fill_control(node_, slice);
  arbitrate(node_, slice.granted());
  if (slice.outlives_processes()) {
    if (const auto opened = open_attach_point(node_, slice); !opened) return opened;
    if (const auto written = announce(node_, slice); !written) return written;
  } else {
    make_cgroup(slice);
    protect(node_, slice);
    slice.creator.id = creator;
    ending_.watch_creator(slice);
  }
  node_.pages.write_state(slice);
  return {};
}

// Puts the slice into its own cgroup if the agent can create one.
void Lifecycle::make_cgroup(LiveSlice& slice) {
  if (!cgroup_trouble_.empty()) return;
  auto cgroup = open_cgroup(slice.name());
  if (!cgroup) {
    os::log::warning(os::cause_of_user(slice.granted().owner), "{}: identified only by its process tree: {}",
                     slice.name(), cgroup.error().message);
    return;
  }
  slice.identity.cgroup = cgroup->identity();
  slice.cgroup = std::move(*cgroup);
  ending_.watch_cgroup(slice);
}

namespace {

// Without a cgroup, a process that joins and its orphans could not be found by their descent.
Outcome<void> may_join(const LiveSlice& slice, bool has_program) {
  if (!has_program)
    return failure(FailureKind::failed_precondition, "the program of slice {} is not running", slice.name());
  if (!slice.cgroup)
    return failure(
        FailureKind::failed_precondition,
        "slice {} has no cgroup, so no other process can join it; this needs an agent that runs as "
        "root",
        slice.name());
  return {};
}

// A slice has one program, even after it has ended: a second one would get its name and exit status in the
// slice's history. The same process may repeat its request if it lost the response.
Outcome<void> may_become_program(const LiveSlice& slice, const os::ProcessId& process) {
  if (!slice.entered || slice.root.id == process) return {};
  return failure(
      FailureKind::failed_precondition,
      "slice {0} already has a program, process {1}; start another process in it with carve exec {0}",
      slice.name(), slice.root.id.pid);
}

}  // namespace

Outcome<Entry> Lifecycle::enter(LiveSlice& slice, os::Peer peer, const EnterRequest& request) {
  if (slice.stopping) return failure(FailureKind::failed_precondition, "slice {} is ending", slice.name());
  if (slice.is_over_time())
    return failure(FailureKind::failed_precondition, "the time limit of slice {} was reached", slice.name());
  if (!slice.has_programs())
    return failure(FailureKind::invalid_argument,
                   "slice {} is for containers; start a container with --device {}={}", slice.name(),
                   cdi_kind, slice.name());
  const bool has_program = slice.root.pidfd && os::alive(slice.root.pidfd);
  const auto allowed = request.joins ? may_join(slice, has_program) : may_become_program(slice, peer.process);
  if (!allowed) return tl::unexpected(allowed.error());
  if (slice.cgroup)
    if (const auto moved = slice.cgroup->add(peer.process.pid); !moved) return tl::unexpected(moved.error());
  // The cgroup was given a pid, which is certainly the process's own only if the process is still alive.
  if (!os::alive(peer.pidfd))
    return failure(FailureKind::failed_precondition, "process {} has ended", peer.process.pid);
  const bool is_repeated = slice.entered && slice.root.id == peer.process;
  slice.entered = true;
  if (!has_program) {
    if (slice.root.pidfd) node_.loop.forget(slice.root.pidfd.get());
    slice.root.id = peer.process;
    slice.identity.root = peer.process;
    slice.command = request.command;
    ending_.watch_root(slice);
    node_.event(slice.name(),
                fmt::format("entered by {} (process {}, uid {})",
                            request.command.empty() ? "a program" : request.command.substr(0, 200),
                            peer.process.pid, peer.uid));
  } else if (!is_repeated) {
    slice.descendants.emplace(peer.process, std::move(peer.pidfd));
  }
  node_.pages.write_state(slice);

  const Paths& paths = node_.settings.paths;
  Entry entry;
  entry.cgroup = slice.cgroup.has_value();
  entry.environment["CARVE_SOCKET"] = node_.settings.socket;
  entry.environment["LD_PRELOAD"] = paths.preload;
  entry.environment["CUDA_VISIBLE_DEVICES"] = visible_devices_of(node_, slice, request.visible_devices);
  if (!paths.sim_set.empty()) {
    entry.environment["SIMGPU_DIR"] = paths.sim_set;
    entry.environment["LD_LIBRARY_PATH"] = paths.driver;
  }
  return entry;
}

Outcome<void> Lifecycle::limit_time(LiveSlice& slice, const api::TimeLimit& limit, const std::string& by) {
  if (slice.outlives_processes())
    return failure(FailureKind::invalid_argument,
                   "slice {} may not have a time limit, because it does not end with its processes",
                   slice.name());
  if (slice.stopping || slice.is_over_time())
    return failure(FailureKind::failed_precondition, "slice {} is ending", slice.name());
  if (limit.seconds > api::max_time_limit_seconds || limit.grace_seconds > api::max_grace_seconds)
    return failure(FailureKind::invalid_argument,
                   "a time limit has at most {} s, and its grace time at most {} s",
                   api::max_time_limit_seconds, api::max_grace_seconds);
  slice.deadline.reset();
  if (limit.seconds != 0)
    slice.deadline = {.limit_seconds = limit.seconds,
                      .grace_seconds = limit.grace_seconds,
                      .at_ns = os::monotonic_ns() + static_cast<int64_t>(limit.seconds) * os::second};
  node_.pages.write_state(slice);
  node_.event(slice.name(), limit.seconds == 0 ? "time limit removed by " + by
                                               : fmt::format("time limit of {} set by {}",
                                                             text_of_seconds(limit.seconds), by));
  ending_.watch_deadline(slice);
  return {};
}

Outcome<void> Lifecycle::supervise(LiveSlice& slice, os::Peer peer, const api::Supervision& supervision) {
  if (slice.stopping || slice.is_over_time())
    return failure(FailureKind::failed_precondition, "slice {} is ending", slice.name());
  const bool is_repeated = slice.is_kept && slice.supervisor.id == peer.process;
  if (!is_repeated && slice.supervisor.pidfd && os::alive(slice.supervisor.pidfd))
    return failure(FailureKind::failed_precondition, "slice {} already has a supervisor, process {}",
                   slice.name(), slice.supervisor.id.pid);
  if (slice.supervisor.pidfd) node_.loop.forget(slice.supervisor.pidfd.get());
  if (is_repeated) {
    kill_programs(slice);   // Left behind by the previous program.
    slice.entered = false;  // The next program may enter once.
  }
  if (slice.outlives_processes()) {
    if (slice.supervisor.id) kill_programs(slice);  // Left behind by the previous supervisor.
    if (!slice.cgroup) make_cgroup(slice);
    protect(node_, slice);
    slice.entered = false;  // The new supervisor's program may enter once.
  }
  slice.is_kept = supervision.keeps && !slice.outlives_processes();
  slice.supervisor.id = peer.process;
  slice.identity.supervisor = peer.process;
  ending_.watch_supervisor(slice);
  node_.pages.write_state(slice);
  return {};
}

}  // namespace carve::node
