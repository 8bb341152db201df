// The routes of slices: list, create, explain, update, enter, supervise, thaw, stop.
#include <unistd.h>

#include "node/api/reply.h"
#include "node/api/requests.h"
#include "wire/api/plan.h"
#include "wire/api/problem.h"
#include "wire/api/slice.h"
#include "wire/api/slice_life.h"

namespace carve::node {
namespace {

http::Response whole(const RequestContext& a, const SliceView& slice, unsigned status = 200) {
  return document(view(a.look(), slice, true), status);
}

// The query of the list: "all=true", "pod=UID", or both with '&'.
struct ListQuery {
  bool all = false;
  std::string pod;  // Uid of the pod. Empty for slices of any holder or none.
};

Reply<ListQuery> list_query(std::string_view query) {
  ListQuery out;
  while (!query.empty()) {
    const std::string_view word = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(word.size() + 1, query.size()));
    if (word == "all=true")
      out.all = true;
    else if (word.starts_with("pod=") && word.size() > 4)
      out.pod = word.substr(4);
    else
      return refuse(FailureKind::invalid_argument,
                    fmt::format("'{}' is not a query parameter of /v1/slices; use all=true and pod=UID",
                                word.substr(0, 80)));
  }
  return out;
}

http::Response slices(const RequestContext& a) {
  const auto query = list_query(a.request.query);
  if (!query) return problem(query.error());
  api::SliceList list;
  const ViewContext look = a.look();
  for (const SliceView& slice : a.agent.slices({.name = {}, .ended = query->all})) {
    const auto& pod = slice.record.slice.holder.pod;
    if (!query->pod.empty() && (!pod || pod->uid != query->pod)) continue;
    if (a.may_see(slice.record)) list.slices.push_back(view(look, slice, false));
  }
  return document(list);
}

// Responds with the live slice with this name, or with the last ended one.
http::Response show_known(const RequestContext& a, const std::string& name) {
  const std::vector<SliceView> found = a.agent.slices({.name = name, .ended = true, .processes = true});
  const SliceView* shown = nullptr;
  for (const SliceView& slice : found)
    if (a.may_see(slice.record) && (shown == nullptr || shown->record.to)) shown = &slice;
  return shown != nullptr ? whole(a, *shown) : problem(a.named(name).error());
}

// Responds when the commands of the slice's processes are known, because a process may delay reading them.
http::Response show(const RequestContext& a, const std::string& name) {
  if (!a.named(name)) return show_known(a, name);
  struct Waiting {
    http::LaterAnswer& answer;
    http::Request request;
    http::Caller caller;
  };
  const auto begin = [&agent = a.agent, &diagnose = a.diagnose, &audit = a.audit, request = a.request,
                      caller = a.caller, started_ns = a.started_ns,
                      name](http::LaterAnswer& answer) -> std::shared_ptr<void> {
    const auto waiting = std::make_shared<Waiting>(Waiting{answer, request, caller});
    const auto reply = [&agent, &diagnose, &audit, started_ns, name, waits = std::weak_ptr(waiting)] {
      if (const auto w = waits.lock())
        w->answer.answer(show_known({agent, w->request, w->caller, started_ns, diagnose, audit}, name));
    };
    if (!agent.inspect_processes(name, reply)) reply();
    return waiting;
  };
  return {.content = http::LaterContent{begin}};
}

http::Response show_slot(const RequestContext& a, const std::string& name) {
  if (!a.caller.may_operate())
    return problem(refuse(FailureKind::permission_denied, "only operators may see a slot"));
  const auto slot = parse_container_slot(name);
  return slot ? document(a.agent.files_of(*slot)) : problem(refuse(no_slot(name).value()));
}

http::Response withdraw_slot(const RequestContext& a, const std::string& name) {
  if (!a.caller.may_operate())
    return problem(refuse(FailureKind::permission_denied, "only operators may withdraw a slot"));
  const auto slot = parse_container_slot(name);
  if (!slot) return problem(refuse(no_slot(name).value()));
  a.agent.withdraw(*slot);
  return document(api::Nothing{});
}

// Returns whether the caller is root or the agent's user. Requests that name processes and pods of other users are for
// these two: the agent kills the processes of a slice, so an operator could kill any process with them.
bool is_root_or_agent(const http::Caller& caller) {
  return caller.uid() && (*caller.uid() == 0 || *caller.uid() == geteuid());
}

http::Response create(const RequestContext& a) {
  if (a.agent.node().bookkeeper == Bookkeeper::kubernetes && !is_root_or_agent(a.caller))
    return problem(refuse(FailureKind::permission_denied,
                          "Kubernetes manages the slices of this node; only root may create them"));
  const auto d = read<api::SliceRequest>(a.request.body);
  if (!d) return problem(d.error());
  const auto request = to_request(a.agent, *d, a.caller);
  if (!request) return problem(refuse(request.error()));
  if (request->lifetime == Lifetime::until_deleted && !a.caller.may_operate() && geteuid() == 0)
    return problem(
        refuse(FailureKind::permission_denied,
               "only operators may create slices for containers, because a container runtime acts on them"));
  const auto slice = a.agent.grant(*request, *a.caller.process(), a.viewer());
  if (slice) return whole(a, *slice, 201);
  Refusal refusal = refuse(slice.error()).value();
  if (slice.error().kind == FailureKind::insufficient_capacity)
    for (const place::Verdict& v : a.agent.explain(*request, a.viewer()).verdicts)
      refusal.problem.reasons.push_back(fmt::format("device {}: {}", v.index, v.message));
  return problem(refusal);
}

std::vector<api::Verdict> verdicts_of(const std::vector<DeviceView>& devices, const place::Answer& answer) {
  std::vector<api::Verdict> out;
  for (size_t i = 0; i < answer.verdicts.size(); ++i) {
    const place::Verdict& v = answer.verdicts[i];
    out.push_back({v.index, text(devices[i].device.uuid), v.fits, v.message});
  }
  return out;
}

// Returns a text such as "8 GiB", "8 GiB of each" or "8 GiB and 4 GiB".
std::string amounts_text(const std::vector<place::PlacementPart>& parts) {
  std::string out;
  for (const place::PlacementPart& part : parts)
    out += fmt::format("{}{}", out.empty() ? "" : " and ", text(part.memory).c_str());
  const bool are_equal = std::ranges::all_of(
      parts, [&](const place::PlacementPart& part) { return part.memory == parts.front().memory; });
  if (!are_equal || parts.size() == 1) return out;
  return fmt::format("{} of each", text(parts.front().memory).c_str());
}

http::Response explain(const RequestContext& a) {
  const auto d = read<api::SliceRequest>(a.request.body);
  if (!d) return problem(d.error());
  const auto request = to_request(a.agent, *d, a.caller);
  if (!request) return problem(refuse(request.error()));
  const place::Answer answer = a.agent.explain(*request, a.viewer());
  api::Explanation out;
  out.fits = answer.placement.has_value();
  const std::vector<DeviceView> devices = a.agent.devices();
  out.devices = verdicts_of(devices, answer);
  if (answer.placement) {
    for (const size_t i : answer.placement->devices()) out.chosen.push_back(devices[i].device.index);
    const Strategy strategy = request->strategy.value_or(a.agent.node().strategy);
    out.message = fmt::format("the slice would be placed on {} {}: {} ({}: {})",
                              out.chosen.size() == 1 ? "device" : "devices", fmt::join(out.chosen, ", "),
                              amounts_text(answer.placement->parts), text(strategy), place::choice(strategy));
    if (answer.placement->connected)
      out.message += fmt::format("; the devices are connected by {}", text(*answer.placement->connected));
  } else {
    out.message = answer.summary;
  }
  return document(out);
}

http::Response alter(const RequestContext& a, const std::string& name) {
  if (!a.request.query.empty() && a.request.query != "dryRun=true")
    return problem(refuse(FailureKind::invalid_argument,
                          "when a slice is changed, the only query parameter is dryRun=true"));
  const auto d = read<api::SliceChange>(a.request.body);
  if (!d) return problem(d.error());
  const auto slice = a.named(name);
  if (!slice) return problem(slice.error());
  TermsUpdate asked;
  if (d->memory_bytes) asked.memory = Bytes{*d->memory_bytes};
  if (d->share_bp) asked.share = Share{*d->share_bp};
  asked.latency = d->latency_class;
  asked.policy = d->policy;
  asked.is_of_operator = a.caller.may_operate();
  asked.is_dry_run = !a.request.query.empty();
  const auto updated = a.agent.update(slice->record.id, asked, a.caller.text());
  return updated ? whole(a, *updated) : problem(refuse(updated.error()));
}

http::Response stop(const RequestContext& a, const std::string& name) {
  if (!a.request.query.empty() && a.request.query != "when_empty=true")
    return problem(refuse(FailureKind::invalid_argument,
                          "when a slice is deleted, the only query parameter is when_empty=true"));
  const auto slice = a.named(name);
  if (!slice) return problem(slice.error());
  const auto stopped = a.request.query.empty()
                           ? a.agent.stop(slice->record.id, "stopped by " + a.caller.text())
                           : a.agent.release(slice->record.id, "released by " + a.caller.text());
  return stopped ? whole(a, *stopped) : problem(refuse(stopped.error()));
}

// Returns the caller's process with a pidfd that outlives the connection.
Reply<os::Peer> peer_of(const http::Caller& caller) {
  auto peer = caller.peer();
  if (!peer) return refuse(FailureKind::failed_precondition, "the calling process has ended");
  return std::move(*peer);
}

http::Response enter(const RequestContext& a, const std::string& name) {
  const auto d = read<api::EnterRequest>(a.request.body);
  if (!d) return problem(d.error());
  const auto slice = a.named(name);
  if (!slice) return problem(slice.error());
  auto peer = peer_of(a.caller);
  if (!peer) return problem(peer.error());
  EnterRequest asked{.command = d->command.substr(0, 1024), .visible_devices = {}, .joins = d->joins};
  if (d->visible_devices_set) asked.visible_devices = d->visible_devices;
  const auto entry = a.agent.enter(slice->record.id, std::move(*peer), asked);
  if (!entry) return problem(refuse(entry.error()));
  api::Entered out;
  out.environment = entry->environment;
  out.cgroup = entry->cgroup;
  return document(out);
}

http::Response supervise(const RequestContext& a, const std::string& name) {
  const auto d = read<api::Supervision>(a.request.body.empty() ? "{}" : a.request.body);
  if (!d) return problem(d.error());
  const auto slice = a.named(name);
  if (!slice) return problem(slice.error());
  auto peer = peer_of(a.caller);
  if (!peer) return problem(peer.error());
  const auto done = a.agent.supervise(slice->record.id, std::move(*peer), *d);
  return done ? document(api::Nothing{}) : problem(refuse(done.error()));
}

http::Response show_time_limit(const RequestContext& a, const std::string& name) {
  const auto slice = a.named(name);
  if (!slice) return problem(slice.error());
  const auto limit = a.agent.time_limit_of(slice->record.id);
  return limit ? document(*limit) : problem(refuse(limit.error()));
}

http::Response limit_time(const RequestContext& a, const std::string& name) {
  const auto d = read<api::TimeLimit>(a.request.body);
  if (!d) return problem(d.error());
  const auto slice = a.named(name);
  if (!slice) return problem(slice.error());
  const auto done = a.agent.limit_time(slice->record.id, *d, a.caller.text());
  return done ? show_time_limit(a, name) : problem(refuse(done.error()));
}

http::Response thaw(const RequestContext& a, const std::string& name) {
  if (!a.caller.may_operate())
    return problem(
        refuse(FailureKind::permission_denied, "the audit froze the slice; only operators may thaw it"));
  const auto slice = a.named(name);
  if (!slice) return problem(slice.error());
  const auto thawed = a.agent.thaw(slice->record.id);
  return thawed ? whole(a, *thawed) : problem(refuse(thawed.error()));
}

http::Response container(const RequestContext& a, const std::string& name) {
  if (!is_root_or_agent(a.caller))
    return problem(refuse(FailureKind::permission_denied, "only root may assign a container to a slice"));
  const auto d = read<api::ContainerStarted>(a.request.body);
  if (!d) return problem(d.error());
  const auto slice = a.named(name);
  if (!slice) return problem(slice.error());
  if (d->pid < 2 || d->pid > 1u << 22)
    return problem(
        refuse(FailureKind::invalid_argument, fmt::format("{} is not a valid process id", d->pid)));
  const auto done = d->refusal.empty()
                        ? a.agent.add_container(slice->record.id, static_cast<pid_t>(d->pid), d->id)
                        : a.agent.refuse_container(slice->record.id, static_cast<pid_t>(d->pid), d->refusal);
  return done ? document(api::Nothing{}) : problem(refuse(done.error()));
}

http::Response set_pods(const RequestContext& a, const std::string& name) {
  if (!is_root_or_agent(a.caller))
    return problem(refuse(FailureKind::permission_denied, "only root may set the pods of a claim's slice"));
  const auto d = read<api::ClaimPods>(a.request.body);
  if (!d) return problem(d.error());
  const auto slice = a.named(name);
  if (!slice) return problem(slice.error());
  const auto done = a.agent.set_claim_pods(slice->record.id, d->pods);
  return done ? document(api::Nothing{}) : problem(refuse(done.error()));
}

constexpr Route slice_table[] = {
    {"GET", "/v1/slices", slices},
    {"POST", "/v1/slices", create, nullptr, "create", "slice"},
    {"POST", "/v1/explain", explain},
    {"GET", "/v1/slices/{}", nullptr, show},
    {"PATCH", "/v1/slices/{}", nullptr, alter, "set", "slice"},
    {"DELETE", "/v1/slices/{}", nullptr, stop, "stop", "slice"},
    {"POST", "/v1/slices/{}/enter", nullptr, enter, nullptr, nullptr, true},
    {"POST", "/v1/slices/{}/thaw", nullptr, thaw, "thaw", "slice"},
    {"POST", "/v1/slices/{}/supervise", nullptr, supervise},
    {"GET", "/v1/slices/{}/time-limit", nullptr, show_time_limit},
    {"POST", "/v1/slices/{}/time-limit", nullptr, limit_time},
    {"POST", "/v1/slices/{}/container", nullptr, container},
    {"POST", "/v1/slices/{}/pods", nullptr, set_pods},
    {"GET", "/v1/slots/{}", nullptr, show_slot},
    {"DELETE", "/v1/slots/{}", nullptr, withdraw_slot},
};

}  // namespace

std::span<const Route> slice_routes() { return slice_table; }

}  // namespace carve::node
