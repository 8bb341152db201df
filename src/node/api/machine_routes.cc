// The routes of the node and its agent: devices, the node's policy, plans, events and the trace.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "node/api/event_routes.h"
#include "node/api/reply.h"
#include "node/api/requests.h"
#include "node/metrics/chrome_trace.h"
#include "node/metrics/metrics.h"
#include "node/settings/node_labels.h"
#include "os/clock.h"
#include "os/process.h"
#include "os/user.h"
#include "wire/api/device.h"
#include "wire/api/event.h"
#include "wire/api/identity.h"
#include "wire/api/node.h"
#include "wire/api/plan.h"
#include "wire/shm/layout.h"

namespace carve::node {
namespace {

http::Response version(const RequestContext& a) {
  api::Version v;
  v.version = CARVE_VERSION;
  v.pid = static_cast<uint32_t>(getpid());
  const NodeView node = a.agent.node();
  v.simulated = node.simulated;
  v.socket = node.socket;
  v.state = node.state;
  v.started_ns = static_cast<uint64_t>(a.started_ns);
  v.layout = shm::layout_version;
  return document(v);
}

http::Response devices(const RequestContext& a) {
  api::DeviceList list;
  list.links = a.agent.node().links;
  const ViewContext look = a.look();
  for (const DeviceView& d : look.devices()) {
    list.devices.push_back(view(look, d));
    if (!a.caller.may_operate()) list.devices.back().unmanaged_processes.clear();
  }
  return document(list);
}

http::Response consolidation(const RequestContext& a) {
  const auto wanted =
      queried(a.request.query, {"devices", 1, max_slice_devices, "a plan can empty 1 to {} devices"});
  if (!wanted) return problem(wanted.error());
  const auto [plan, placed_slices] = a.agent.plan_consolidation(*wanted, a.viewer());
  const std::vector<DeviceView> all = a.agent.devices();
  api::ConsolidationPlan out;
  out.wanted = *wanted;
  const auto index = [&all](size_t position) { return all[position].device.index; };
  for (const size_t emptied : plan.emptied) out.emptied.push_back(index(emptied));
  for (const place::Plan::Move& m : plan.moves) {
    const place::PlacedSlice& r = placed_slices[m.who];
    const auto part = std::ranges::find(r.parts, m.from, &place::PlacementPart::device);
    out.moves.push_back({r.name, index(m.from), index(m.to), part->memory.count, part->share.basis_points});
  }
  out.moved_bytes = plan.moved.count;
  return document(out);
}

http::Response node(const RequestContext& a) { return document(view_node(a.look())); }

constexpr size_t max_refusal_bytes = 1024;

// Refuses changes that are invalid or contradict each other, before any of them is made.
Outcome<void> check_change(const api::NodeChange& change, const LabelChanges& changed_labels,
                           std::map<std::string, std::string> labels) {
  for (const auto& [key, value] : changed_labels) {
    const auto valid = parse_label_change(value ? key + "=" + *value : key + "-");
    if (!valid || valid->first != key)
      return failure(FailureKind::invalid_argument,
                     "label '{}': the key must not contain '=', and key and value must be printable ASCII",
                     key.substr(0, 80));
    if (value)
      labels[key] = *value;
    else
      labels.erase(key);
  }
  if (change.refuse_grants && change.refuse_grants->size() > max_refusal_bytes)
    return failure(FailureKind::invalid_argument, "refuse_grants: the message must have at most {} bytes",
                   max_refusal_bytes);
  if (change.memory_unit)
    if (const auto good = check_memory_unit(labels, *change.memory_unit); !good) return good;
  return change.policy ? check_policy(labels, *change.policy) : Outcome<void>{};
}

Outcome<void> change_node(const RequestContext& a, const api::NodeChange& change) {
  const std::string by = a.caller.text();
  LabelChanges labels(change.labels.begin(), change.labels.end());
  for (const std::string& key : change.removed_labels) labels[key].reset();
  if (const auto good = check_change(change, labels, a.agent.node().labels); !good) return good;
  for (const auto& [key, value] : labels)
    if (const auto done = a.agent.set_label(key, value, by); !done) return done;
  if (change.memory_unit)
    if (const auto done = a.agent.set_memory_unit(*change.memory_unit,
                                                  change.when_free ? WhenHeld::wait : WhenHeld::refuse, by);
        !done)
      return done;
  if (change.refuse_grants)
    if (const auto done = a.agent.refuse_grants(*change.refuse_grants, by); !done) return done;
  return change.policy ? a.agent.set_policy(*change.policy, by) : Outcome<void>{};
}

http::Response alter_node(const RequestContext& a) {
  if (!a.caller.may_operate())
    return problem(refuse(FailureKind::permission_denied, "only operators may change the node"));
  const auto d = read<api::NodeChange>(a.request.body);
  if (!d) return problem(d.error());
  if (!d->policy && d->labels.empty() && d->removed_labels.empty() && !d->memory_unit && !d->refuse_grants)
    return problem(
        refuse(FailureKind::invalid_argument, "no change is given; set a policy, a memory unit or a label"));
  if (const auto done = change_node(a, *d); !done) return problem(refuse(done.error()));
  return node(a);
}

// Returns the entries of the caller; for operators, all entries.
http::Response audit(const RequestContext& a) {
  api::AuditList out;
  const std::string caller = a.caller.text();
  for (const api::AuditEntry& entry : a.audit.entries())
    if (a.caller.may_operate() || entry.caller == caller) out.items.push_back(entry);
  return document(out);
}

std::string operator_reason(const http::Caller& caller) {
  if (!caller.may_operate()) return "";
  if (caller.uid() == 0) return "root";
  if (caller.uid() == geteuid()) return "the agent's user";
  return caller.operating_reason().empty() ? "the controller's user" : caller.operating_reason();
}

http::Response whoami(const RequestContext& a) {
  const uint32_t uid = *a.caller.uid();
  const std::string user = os::user_name(uid);
  return document(api::Identity{.user = user,
                                .uid = uid,
                                .is_operator = a.caller.may_operate(),
                                .reason = operator_reason(a.caller),
                                .limits = a.agent.limits_of(uid, user).items});
}

http::Response limits(const RequestContext& a) {
  if (a.caller.may_operate()) return document(a.agent.limits());
  return document(a.agent.limits_of(*a.caller.uid(), os::user_name(*a.caller.uid())));
}

Reply<void> may_limit(const RequestContext& a) {
  if (a.caller.may_operate()) return {};
  return refuse(FailureKind::permission_denied, "only operators may change limits");
}

http::Response change_limit(const RequestContext& a) {
  if (const auto may = may_limit(a); !may) return problem(may.error());
  const auto d = read<api::LimitChange>(a.request.body);
  if (!d) return problem(d.error());
  const auto changed = a.agent.set_limit(*d, a.caller.text());
  return changed ? document(*changed) : problem(refuse(changed.error()));
}

http::Response remove_limit(const RequestContext& a, const std::string& key) {
  if (const auto may = may_limit(a); !may) return problem(may.error());
  const auto removed = a.agent.remove_limit(key, a.caller.text());
  return removed ? document(*removed) : problem(refuse(removed.error()));
}

constexpr size_t max_spans = 100'000;  // About 11 MB; the newest spans are kept.

// Returns the spans of the last N seconds of the slices that the caller may see.
http::Response trace(const RequestContext& a) {
  const auto seconds =
      queried(a.request.query, {"seconds", 5, max_trace_seconds, "a trace can cover 1 to {} s"});
  if (!seconds) return problem(seconds.error());
  TraceNames names;
  const std::string simulated = a.agent.node().simulated.empty() ? "" : " (simulated)";
  for (const DeviceView& d : a.agent.devices())
    names.devices.push_back({d.device.uuid, d.device.index, d.device.name + simulated});
  for (const SliceView& slice : a.agent.slices({.name = {}, .ended = true}))
    if (a.may_see(slice.record)) names.slices[slice.record.id] = slice.name();
  const int64_t since = os::monotonic_ns() - *seconds * os::second;
  const std::vector<TraceSpan> all = a.agent.trace(since);
  const auto spans = std::span(all).last(std::min(all.size(), max_spans));
  return {200, "application/json", chrome_trace(spans, names, since)};
}

http::Response metrics(const RequestContext& a) {
  const api::MetricsFormat format = api::metrics_format(a.request.headers.find("Accept"));
  return {200, api::metrics_type(format), metrics_text(figures(a.look()), format)};
}

constexpr size_t max_usage_records = 1000;
constexpr size_t max_usage_ids = 500;
constexpr uint64_t max_pid = 1 << 22;  // PID_MAX_LIMIT of the kernel.

// Parses "after=ID", "after=ID&limit=N", "ids=ID,ID,..." or an empty query, which means "after=0".
struct UsageQuery {
  uint64_t after = 0;
  size_t limit = max_usage_records;
  std::vector<uint64_t> ids;
};

std::optional<uint64_t> id_of(std::string_view text) {
  uint64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(id) : std::nullopt;
}

Reply<UsageQuery> usage_query(std::string_view query) {
  constexpr std::string_view after = "after=", ids = "ids=";
  UsageQuery out;
  if (query.empty()) return out;
  if (query.starts_with(after)) {
    constexpr std::string_view limit = "&limit=";
    const size_t end = std::min(query.find(limit), query.size());
    const auto id = id_of(query.substr(after.size(), end - after.size()));
    const auto most = end == query.size() ? std::optional<uint64_t>(max_usage_records)
                                          : id_of(query.substr(end + limit.size()));
    if (id && most && *most >= 1 && *most <= max_usage_records) {
      out.after = *id;
      out.limit = *most;
      return out;
    }
  }
  if (query.starts_with(ids))
    for (query.remove_prefix(ids.size());; query.remove_prefix(query.find(',') + 1)) {
      const auto id = id_of(query.substr(0, query.find(',')));
      if (!id || out.ids.size() == max_usage_ids) break;
      out.ids.push_back(*id);
      if (query.find(',') == std::string_view::npos) return out;
    }
  return refuse(
      FailureKind::invalid_argument,
      fmt::format("list usage records with ?after=ID, with ?after=ID&limit=N and N from 1 to {}, or with "
                  "?ids=ID,... and at most {} ids",
                  max_usage_records, max_usage_ids));
}

http::Response usage(const RequestContext& a) {
  const auto query = usage_query(a.request.query);
  if (!query) return problem(query.error());
  auto records =
      query->ids.empty() ? a.agent.usage_after(query->after, query->limit) : a.agent.usage_of(query->ids);
  if (!records) return problem(refuse(records.error()));
  ledger::UsagePage out{
      .records = {}, .last = records->empty() ? query->after : records->back().id, .query = a.request.query};
  for (ledger::UsageRecord& record : *records)
    if (a.may_see(record)) out.records.push_back(std::move(record));
  return document(out);
}

// Returns the slice of a process, for a program that identifies its own callers. Pid and start time identify
// the process even after its end, and the pidfd proves that it was alive while its slice was looked up.
http::Response process_slice(const RequestContext& a, const std::string& name) {
  constexpr std::string_view start = "start=";
  const uint64_t pid = id_of(name).value_or(0);
  const uint64_t begun = a.request.query.starts_with(start)
                             ? id_of(std::string_view(a.request.query).substr(start.size())).value_or(0)
                             : 0;
  if (pid == 0 || pid > max_pid || begun == 0)
    return problem(refuse(FailureKind::invalid_argument,
                          fmt::format("use /v1/processes/PID?start=TICKS, with a PID of at most "
                                      "{} and field 22 of /proc/PID/stat",
                                      max_pid)));
  const os::ProcessId process{static_cast<pid_t>(pid), begun};
  const os::Fd pidfd = os::open_process(process);
  struct stat owner {};
  const bool known = pidfd && stat(fmt::format("/proc/{}", process.pid).c_str(), &owner) == 0;
  const bool may_see = known && (a.caller.may_operate() || a.caller.uid() == owner.st_uid);
  const auto slice = may_see ? a.agent.slice_of(process.pid) : std::nullopt;
  if (!may_see || !os::alive(pidfd))
    return problem(refuse(FailureKind::not_found,
                          fmt::format("there is no process {} of yours that started at {}", pid, begun)));
  return document(api::ProcessSlice{.slice = slice ? slice->name() : ""});
}

constexpr Route machine_table[] = {
    {"GET", "/v1/version", version},
    {"GET", "/v1/devices", devices},
    {"GET", "/v1/consolidation", consolidation},
    {"GET", "/v1/doctor", [](const RequestContext& a) { return document(a.diagnose()); }},
    {"GET", "/v1/events", events},
    {"GET", "/v1/node", node},
    {"PATCH", "/v1/node", alter_node, nullptr, "set", "node"},
    {"GET", "/v1/whoami", whoami},
    {"GET", "/v1/limits", limits},
    {"PATCH", "/v1/limits", change_limit, nullptr, "set", "limit"},
    {"DELETE", "/v1/limits/{}", nullptr, remove_limit, "remove", "limit"},
    {"GET", "/v1/audit", audit},
    {"GET", "/v1/trace", trace},
    {"GET", "/v1/usage", usage},
    {"GET", "/v1/processes/{}", nullptr, process_slice},
    {"GET", "/metrics", metrics},
};

}  // namespace

std::span<const Route> machine_routes() { return machine_table; }

}  // namespace carve::node
