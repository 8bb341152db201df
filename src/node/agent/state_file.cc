#include "node/agent/state_file.h"

namespace carve::node {
namespace {

// The file's form: a flat JSON document, in the units of the API.
struct ProcessDocument {
  uint32_t pid = 0;
  uint64_t start = 0;
  static void fields(auto& self, auto&& field) {
    field("pid", self.pid);
    field("start", self.start);
  }
};

struct PartDocument {
  std::string device;
  uint64_t memory_bytes = 0;
  uint32_t share_bp = 0;
  uint64_t spill_bytes = 0;
  static void fields(auto& self, auto&& field) {
    field("device", self.device);
    field("memory_bytes", self.memory_bytes);
    field("share_bp", self.share_bp);
    field("spill_bytes", self.spill_bytes);
  }
};

struct PeriodDocument {  // ledger::Period
  uint64_t memory_bytes = 0, to_utc_ns = 0, to_monotonic_ns = 0;
  uint32_t share_bp = 0;
  std::string policy, latency, isolation, to_boot_id;
  static void fields(auto& self, auto&& field) {
    field("memory_bytes", self.memory_bytes);
    field("share_bp", self.share_bp);
    field("policy", self.policy);
    field("latency", self.latency);
    field("isolation", self.isolation);
    field("to_utc_ns", self.to_utc_ns);
    field("to_boot_id", self.to_boot_id);
    field("to_monotonic_ns", self.to_monotonic_ns);
  }
};

struct ContainerDocument {
  ProcessDocument init;
  std::map<std::string, std::string> cgroups;
  uint64_t pid_namespace = 0;
  static void fields(auto& self, auto&& field) {
    field("init", self.init);
    field("cgroups", self.cgroups);
    field("pid_namespace", self.pid_namespace);
  }
};

struct StateFileDocument {
  uint64_t id = 0;
  std::string name, request_id, command, boot_id, created_boot_id, isolation, policy, latency, application;
  uint32_t owner_uid = 0;
  bool exclusive = false, container = false, cgroup = false, entered = false;
  uint64_t created_utc_ns = 0, created_monotonic_ns = 0;
  std::vector<PartDocument> parts;
  std::vector<PeriodDocument> periods;
  ProcessDocument creator, root, supervisor;
  std::vector<ContainerDocument> containers;
  static void fields(auto& self, auto&& field) {
    field("id", self.id);
    field("name", self.name);
    field("request_id", self.request_id);
    field("command", self.command);
    field("boot_id", self.boot_id);
    field("created_boot_id", self.created_boot_id);
    field("isolation", self.isolation);
    field("policy", self.policy);
    field("latency", self.latency);
    field("application", self.application);
    field("owner_uid", self.owner_uid);
    field("exclusive", self.exclusive);
    field("container", self.container);
    field("cgroup", self.cgroup);
    field("entered", self.entered);
    field("created_utc_ns", self.created_utc_ns);
    field("created_monotonic_ns", self.created_monotonic_ns);
    field("parts", self.parts);
    field("periods", self.periods);
    field("creator", self.creator);
    field("root", self.root);
    field("supervisor", self.supervisor);
    field("containers", self.containers);
  }
};

ProcessDocument document_of(const os::ProcessId& p) { return {static_cast<uint32_t>(p.pid), p.start}; }
os::ProcessId process_of(const ProcessDocument& d) { return {static_cast<pid_t>(d.pid), d.start}; }

}  // namespace

std::string write_state_file(const StateFile& state) {
  const ledger::UsageRecord& record = state.record;
  StateFileDocument d;
  d.id = record.id;
  d.name = record.slice.name;
  d.request_id = record.slice.request_id;
  d.command = state.command;
  d.boot_id = state.boot_id;
  d.created_boot_id = record.from.boot_id;
  d.isolation = text(record.slice.isolation);
  d.policy = text(record.slice.policy);
  d.latency = text(record.slice.latency);
  d.application = record.slice.application;
  d.owner_uid = record.slice.owner;
  d.exclusive = record.slice.exclusive;
  d.container = record.slice.persistent;
  d.cgroup = state.cgroup;
  d.entered = state.entered;
  d.created_utc_ns = static_cast<uint64_t>(record.from.utc_ns);
  d.created_monotonic_ns = static_cast<uint64_t>(record.from.monotonic_ns);
  for (const SlicePart& s : record.slice.parts)
    d.parts.push_back({text(s.device), s.memory.count, s.share.basis_points, s.spill.count});
  for (const ledger::Period& p : record.periods)
    d.periods.push_back({p.terms.memory.count, static_cast<uint64_t>(p.to.utc_ns),
                         static_cast<uint64_t>(p.to.monotonic_ns), p.terms.share.basis_points,
                         std::string(text(p.terms.policy)), std::string(text(p.terms.latency)),
                         std::string(text(p.terms.isolation)), p.to.boot_id});
  d.creator = document_of(state.creator);
  d.root = document_of(state.root);
  d.supervisor = document_of(state.supervisor);
  for (const ContainerIdentity& c : state.containers)
    d.containers.push_back({document_of(c.init), c.cgroups, c.pid_namespace});
  return api::write(d);
}

std::optional<StateFile> read_state_file(const std::string& written) {
  const auto d = api::read<StateFileDocument>(written, api::Reading::lenient);
  if (!d) return std::nullopt;
  const auto isolation = parse_isolation(d->isolation);
  const auto policy = parse_policy(d->policy);
  const auto latency = parse_latency_class(d->latency);
  if (!isolation || !policy || !latency) return std::nullopt;
  StateFile state;
  state.record.id = d->id;
  state.boot_id = d->boot_id;
  state.record.from = {static_cast<int64_t>(d->created_utc_ns), d->created_boot_id,
                       static_cast<int64_t>(d->created_monotonic_ns)};
  Slice& granted = state.record.slice;
  granted.name = d->name;
  granted.request_id = d->request_id;
  granted.owner = d->owner_uid;
  granted.exclusive = d->exclusive;
  granted.persistent = d->container;
  granted.isolation = *isolation;
  granted.policy = *policy;
  granted.latency = *latency;
  granted.application = d->application;
  for (const PartDocument& s : d->parts) {
    const auto uuid = parse_uuid(s.device);
    if (!uuid) return std::nullopt;
    granted.parts.push_back({*uuid, {s.memory_bytes}, {s.share_bp}, {s.spill_bytes}});
  }
  for (const PeriodDocument& p : d->periods) {
    const auto was_policy = parse_policy(p.policy);
    const auto was_latency = parse_latency_class(p.latency);
    const auto was_isolation = parse_isolation(p.isolation);
    if (!was_policy || !was_latency || !was_isolation) return std::nullopt;
    state.record.periods.push_back(
        {{{p.memory_bytes}, {p.share_bp}, *was_policy, *was_latency, *was_isolation},
         {static_cast<int64_t>(p.to_utc_ns), p.to_boot_id, static_cast<int64_t>(p.to_monotonic_ns)}});
  }
  state.command = d->command;
  state.cgroup = d->cgroup;
  state.entered = d->entered;
  state.creator = process_of(d->creator);
  state.root = process_of(d->root);
  state.supervisor = process_of(d->supervisor);
  for (const ContainerDocument& c : d->containers)
    state.containers.push_back({process_of(c.init), c.cgroups, c.pid_namespace});
  return state;
}

}  // namespace carve::node
