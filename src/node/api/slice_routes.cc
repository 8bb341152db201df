// The routes of slices: list, create, explain, update, enter, supervise, thaw, stop.
#include <unistd.h>

#include "node/api/reply.h"
#include "node/api/requests.h"
#include "wire/api/plan.h"
#include "wire/api/problem.h"
#include "wire/api/slice.h"

namespace carve::node {
namespace {

using K = FailureKind;

http::Response slices(const RequestContext& a) {
  api::SliceList list;
  const ViewContext look = a.look();
  for (const auto& [id, slice] : a.agent.slices())
    if (a.may_see(slice->record)) list.slices.push_back(view(look, *slice, false));
  if (a.request.query == "all=true")
    for (const ledger::UsageRecord& record : a.agent.ledger().ended())
      if (a.may_see(record)) list.slices.push_back(view(a.agent, record, false));
  return document(list);
}

http::Response show(const RequestContext& a, const std::string& name) {
  const auto slice = a.named(name);
  if (slice) return document(view(a.look(), **slice, true));
  const auto& ended = a.agent.ledger().ended();
  for (auto record = ended.rbegin(); record != ended.rend(); ++record)
    if (record->slice.name == name && a.may_see(*record)) return document(view(a.agent, *record, true));
  return problem(slice.error());
}

http::Response create(const RequestContext& a) {
  const auto d = read<api::SliceRequest>(a.request.body);
  if (!d) return problem(d.error());
  const auto request = to_request(a.agent, *d, a.caller);
  if (!request) return problem(refuse(request.error()));
  if (request->lifetime == Lifetime::until_deleted && !a.caller.may_operate() && geteuid() == 0)
    return problem(
        refuse(FailureKind::permission_denied,
               "only root may create slices for containers, because a container runtime acts on them"));
  const auto slice = a.agent.grant(*request, *a.caller.process(), a.viewer());
  if (slice) return document(view(a.look(), **slice, true), 201);
  Refusal refusal = refuse(slice.error()).value();
  if (slice.error().kind == K::insufficient_capacity)
    for (const place::Verdict& v : a.agent.explain(*request, a.viewer()).verdicts)
      refusal.problem.reasons.push_back(fmt::format("device {}: {}", v.index, v.sentence));
  return problem(refusal);
}

std::vector<api::Verdict> verdicts_of(const Agent& agent, const place::Answer& answer) {
  std::vector<api::Verdict> out;
  for (size_t i = 0; i < answer.verdicts.size(); ++i) {
    const place::Verdict& v = answer.verdicts[i];
    out.push_back({v.index, text(agent.devices()[i].device.uuid), v.fits, v.sentence});
  }
  return out;
}

http::Response explain(const RequestContext& a) {
  const auto d = read<api::SliceRequest>(a.request.body);
  if (!d) return problem(d.error());
  const auto request = to_request(a.agent, *d, a.caller);
  if (!request) return problem(refuse(request.error()));
  const place::Answer answer = a.agent.explain(*request, a.viewer());
  api::Explanation out;
  out.fits = answer.placement.has_value();
  out.devices = verdicts_of(a.agent, answer);
  if (answer.placement) {
    for (const size_t i : answer.placement->devices) out.chosen.push_back(a.agent.devices()[i].device.index);
    const Strategy strategy = request->strategy.value_or(a.agent.settings().strategy);
    out.sentence = fmt::format(
        "it would be placed on {} {}: {}{} ({}: {})", out.chosen.size() == 1 ? "device" : "devices",
        fmt::join(out.chosen, ", "), text(answer.placement->memory).c_str(),
        out.chosen.size() == 1 ? "" : " of each", text(strategy), place::choice(strategy));
    if (answer.placement->connected)
      out.sentence += fmt::format("; the devices are connected by {}", text(*answer.placement->connected));
  } else {
    out.sentence = answer.summary;
  }
  return document(out);
}

http::Response alter(const RequestContext& a, const std::string& name) {
  const auto d = read<api::SliceChange>(a.request.body);
  if (!d) return problem(d.error());
  const auto slice = a.named(name);
  if (!slice) return problem(slice.error());
  TermsUpdate asked;
  if (d->memory_bytes) asked.memory = Bytes{*d->memory_bytes};
  if (d->share_bp) asked.share = Share{*d->share_bp};
  asked.latency = d->latency_class;
  asked.policy = d->policy;
  const auto done = a.agent.alter(**slice, asked, a.caller.text());
  return done ? document(view(a.look(), **slice, true)) : problem(refuse(done.error()));
}

http::Response stop(const RequestContext& a, const std::string& name) {
  const auto slice = a.named(name);
  if (!slice) return problem(slice.error());
  const uint64_t id = (*slice)->record.id;
  a.agent.stop(**slice, "stopped by " + a.caller.text());
  if (LiveSlice* living = a.agent.find(name); living != nullptr && living->record.id == id)
    return document(view(a.look(), *living, true));
  return document(view(a.agent, a.agent.ledger().ended().back(), true));
}

// Opens a pidfd of the caller's process, which the connection's own does not outlive.
Reply<os::Peer> peer_of(const http::Caller& caller) {
  os::Fd pidfd = os::open_process(*caller.process());
  if (!pidfd) return refuse(K::failed_precondition, "the caller has ended");
  return os::Peer(*caller.process(), std::move(pidfd), *caller.uid());
}

http::Response enter(const RequestContext& a, const std::string& name) {
  const auto d = read<api::EnterRequest>(a.request.body);
  if (!d) return problem(d.error());
  const auto slice = a.named(name);
  if (!slice) return problem(slice.error());
  const bool cgroup = (*slice)->cgroup.has_value();
  auto peer = peer_of(a.caller);
  if (!peer) return problem(peer.error());
  const auto environment = a.agent.enter(**slice, std::move(*peer), d->command.substr(0, 1024),
                                         d->visible_devices_set ? &d->visible_devices : nullptr);
  if (!environment) return problem(refuse(environment.error()));
  api::Entered out;
  out.environment = *environment;
  out.cgroup = cgroup;
  return document(out);
}

http::Response supervise(const RequestContext& a, const std::string& name) {
  const auto slice = a.named(name);
  if (!slice) return problem(slice.error());
  auto peer = peer_of(a.caller);
  if (!peer) return problem(peer.error());
  const auto done = a.agent.supervise(**slice, std::move(*peer));
  return done ? document(api::Nothing{}) : problem(refuse(done.error()));
}

http::Response thaw(const RequestContext& a, const std::string& name) {
  if (!a.caller.may_operate())
    return problem(refuse(FailureKind::permission_denied,
                          "the audit froze the slice; only root and the agent's user may thaw it"));
  const auto slice = a.named(name);
  if (!slice) return problem(slice.error());
  const auto done = a.agent.thaw(**slice);
  return done ? document(view(a.look(), **slice, true)) : problem(refuse(done.error()));
}

http::Response container(const RequestContext& a, const std::string& name) {
  if (!a.caller.may_operate())
    return problem(refuse(FailureKind::permission_denied, "only root may assign a container to a slice"));
  const auto d = read<api::ContainerStarted>(a.request.body);
  if (!d) return problem(d.error());
  const auto slice = a.named(name);
  if (!slice) return problem(slice.error());
  if (d->pid < 2 || d->pid > 1u << 22)
    return problem(refuse(FailureKind::invalid_argument, fmt::format("{} is not a process", d->pid)));
  const auto done = a.agent.add_container(**slice, static_cast<pid_t>(d->pid), d->id);
  return done ? document(api::Nothing{}) : problem(refuse(done.error()));
}

constexpr Route slice_table[] = {
    {"GET", "/v1/slices", slices},
    {"POST", "/v1/slices", create},
    {"POST", "/v1/explain", explain},
    {"GET", "/v1/slices/{}", nullptr, show},
    {"PATCH", "/v1/slices/{}", nullptr, alter},
    {"DELETE", "/v1/slices/{}", nullptr, stop},
    {"POST", "/v1/slices/{}/enter", nullptr, enter, true},
    {"POST", "/v1/slices/{}/thaw", nullptr, thaw},
    {"POST", "/v1/slices/{}/supervise", nullptr, supervise},
    {"POST", "/v1/slices/{}/container", nullptr, container},
};

}  // namespace

std::span<const Route> slice_routes() { return slice_table; }

}  // namespace carve::node
