#include "node/serve/routes.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "node/os/clock.h"
#include "node/os/log.h"
#include "node/serve/chrome_trace.h"
#include "node/serve/metrics.h"
#include "node/serve/views.h"

namespace carve::node {
namespace {

using K = FailureKind;

// A refusal that is more than a kind and a sentence.
struct Refusal {
  api::Problem problem;
};
template <class T>
using Reply = Result<T, Refusal>;

tl::unexpected<Refusal> refuse(unsigned status, const char* type, const char* title, std::string detail) {
  api::Problem problem;
  problem.type = type;
  problem.title = title;
  problem.status = status;
  problem.detail = std::move(detail);
  return tl::unexpected(Refusal{std::move(problem)});
}

tl::unexpected<Refusal> refuse(const Failure& f) {
  switch (f.kind) {
    case K::bad_request: return refuse(400, "carve:bad-request", "the request is wrong", f.sentence);
    case K::not_permitted: return refuse(403, "carve:not-permitted", "not permitted", f.sentence);
    case K::not_found: return refuse(404, "carve:not-found", "not found", f.sentence);
    case K::conflict: return refuse(409, "carve:conflict", "in conflict with what is", f.sentence);
    case K::no_room: return refuse(409, "carve:does-not-fit", "does not fit", f.sentence);
    case K::out_of_order:
      return refuse(503, "carve:out-of-order", "the agent cannot do this now", f.sentence);
  }
  return refuse(500, "about:blank", "internal", f.sentence);
}

HttpAnswer problem(const Refusal& r) {
  return {r.problem.status, "application/problem+json", api::write(r.problem)};
}

template <class T>
HttpAnswer document(const T& d, unsigned status = 200) {
  return {status, "application/json", api::write(d)};
}

template <class T>
Reply<T> read(const std::string& body) {
  auto d = api::read<T>(body.empty() ? "{}" : body, api::Reading::strict);
  if (!d) return refuse(400, "carve:bad-request", "the request is wrong", d.error());
  return *d;
}

// "0", "GPU-...", or a unique beginning of a UUID.
Outcome<Uuid> device_named(const Agent& agent, const std::string& word) {
  const NodeDevice* found = nullptr;
  const bool number = !word.empty() && word.size() <= 3 &&
                      std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
  for (const NodeDevice& d : agent.devices()) {
    const bool same = number ? d.device.index == static_cast<unsigned>(std::stoi(word))
                             : word.size() > 4 && text(d.device.uuid).starts_with(word);
    if (!same) continue;
    if (found != nullptr)
      return failure(K::bad_request, "'{}' begins the UUIDs of several devices; say more of it",
                     word.substr(0, 80));
    found = &d;
  }
  if (found == nullptr)
    return failure(K::bad_request, "there is no device '{}'; carve devices lists what there is",
                   word.substr(0, 80));
  return found->device.uuid;
}

Outcome<Policy> policy_named(const std::string& word) {
  const auto policy = parse_policy(word);
  if (!policy)
    return failure(K::bad_request,
                   "'{}' is no policy: fixed-share, guaranteed-burst-share or native-burst-share",
                   word.substr(0, 80));
  return *policy;
}

Outcome<Request> to_request(const Agent& agent, const api::SliceRequest& d, uint32_t owner) {
  Request r;
  r.name = d.name;
  r.request_id = d.request_id;
  r.owner = owner;
  if (d.memory_bytes.has_value() + d.memory_bp.has_value() + d.total_memory_bytes.has_value() > 1)
    return failure(K::bad_request,
                   "memory is said in one way: per device, in parts of a device, or in total");
  if (d.memory_bytes) r.memory = PerDevice{{*d.memory_bytes}};
  if (d.memory_bp) r.memory = OfUsable{{*d.memory_bp}};
  if (d.total_memory_bytes) r.memory = InTotal{{*d.total_memory_bytes}};
  if (d.share_bp && *d.share_bp == 0)
    return failure(K::bad_request, "a compute share lies above 0% and up to 100%; leave it out for none");
  r.share = {d.share_bp.value_or(0)};
  if (!d.oversubscribe.empty() && d.oversubscribe != "managed")
    return failure(K::bad_request, "'{}' is no way to oversubscribe: managed", d.oversubscribe.substr(0, 80));
  if (d.oversubscribe.empty() != (d.spill_bytes == 0))
    return failure(K::bad_request,
                   "oversubscription and its ceiling go together: oversubscribe \"managed\" and spill_bytes, "
                   "or neither");
  r.spill = {d.spill_bytes};
  r.devices = d.devices;
  r.exclusive = d.exclusive;
  r.persistent = d.container;
  r.latency = d.latency ? LatencyClass::latency : LatencyClass::batch;
  if (!d.device.empty()) {
    const auto uuid = device_named(agent, d.device);
    if (!uuid) return tl::unexpected(uuid.error());
    r.device = *uuid;
  }
  if (!d.strategy.empty()) r.strategy = parse_strategy(d.strategy);
  if (!d.strategy.empty() && !r.strategy)
    return failure(K::bad_request, "'{}' is no strategy: binpack or spread", d.strategy.substr(0, 80));
  if (!d.policy.empty()) {
    const auto policy = policy_named(d.policy);
    if (!policy) return tl::unexpected(policy.error());
    r.policy = *policy;
  }
  const auto isolation = d.isolation.empty() ? default_isolation(r.share) : parse_isolation(d.isolation);
  if (!isolation)
    return failure(K::bad_request, "'{}' is no isolation: none, memory or memory+compute",
                   d.isolation.substr(0, 80));
  r.isolation = *isolation;
  return validated(std::move(r));
}

std::vector<api::Verdict> verdicts_of(const Agent& agent, const place::Answer& answer) {
  std::vector<api::Verdict> out;
  for (size_t i = 0; i < answer.verdicts.size(); ++i) {
    const place::Verdict& v = answer.verdicts[i];
    out.push_back({v.index, text(agent.devices()[i].device.uuid), v.fits, v.sentence});
  }
  return out;
}

struct Asked {
  Agent& agent;
  const HttpRequest& request;
  Peer& peer;
  Tenant* inside;  // The tenant that the caller is in, if any.
  int64_t started_ns;

  bool sees_all() const { return peer.uid == 0 || peer.uid == geteuid(); }
  bool may_see(const ledger::Use& use) const { return sees_all() || use.what.owner == peer.uid; }
  Look look() const {
    return {agent, [this](const ledger::Use& use) { return may_see(use); }};
  }

  // The slice NAME, where the caller may see it; what is somebody else's does not exist for others.
  Reply<Tenant*> named(const std::string& name) const {
    Tenant* tenant = agent.find(name);
    if (tenant == nullptr || !may_see(tenant->use))
      return refuse(404, "carve:no-such-slice", "no such slice",
                    fmt::format("there is no slice '{}'; carve ps lists yours", name.substr(0, 80)));
    return tenant;
  }
};

HttpAnswer version(const Asked& a) {
  api::Version v;
  v.version = CARVE_VERSION;
  v.pid = static_cast<uint32_t>(getpid());
  v.simulated = a.agent.settings().paths.sim_spec;
  v.socket = a.agent.settings().socket;
  v.state = a.agent.settings().state;
  v.started_ns = static_cast<uint64_t>(a.started_ns);
  v.layout = shm::layout_version;
  return document(v);
}

HttpAnswer devices(const Asked& a) {
  api::DeviceList list;
  const Look look = a.look();
  for (const NodeDevice& d : a.agent.devices()) {
    list.devices.push_back(view(look, d));
    if (!a.sees_all()) list.devices.back().strangers.clear();
  }
  return document(list);
}

HttpAnswer slices(const Asked& a) {
  api::SliceList list;
  const Look look = a.look();
  for (const auto& [id, tenant] : a.agent.tenants())
    if (a.may_see(tenant->use)) list.slices.push_back(view(look, *tenant, false));
  if (a.request.query == "all=true")
    for (const ledger::Use& use : a.agent.ledger().ended())
      if (a.may_see(use)) list.slices.push_back(view(a.agent, use, false));
  return document(list);
}

HttpAnswer show(const Asked& a, const std::string& name) {
  const auto tenant = a.named(name);
  if (tenant) return document(view(a.look(), **tenant, true));
  const auto& ended = a.agent.ledger().ended();
  for (auto use = ended.rbegin(); use != ended.rend(); ++use)
    if (use->what.name == name && a.may_see(*use)) return document(view(a.agent, *use, true));
  return problem(tenant.error());
}

HttpAnswer create(const Asked& a) {
  const auto d = read<api::SliceRequest>(a.request.body);
  if (!d) return problem(d.error());
  const auto request = to_request(a.agent, *d, a.peer.uid);
  if (!request) return problem(refuse(request.error()).value());
  if (request->persistent && a.peer.uid != 0 && geteuid() == 0)
    return problem(refuse(403, "carve:not-permitted", "not permitted",
                          "slices for containers are made by root: a container runtime acts on them")
                       .value());
  const auto tenant = a.agent.grant(*request, a.peer);
  if (tenant) return document(view(a.look(), **tenant, true), 201);
  Refusal refusal = refuse(tenant.error()).value();
  if (tenant.error().kind == K::conflict) {
    refusal.problem.type = "carve:name-taken";
    refusal.problem.title = "the name is taken";
  }
  if (tenant.error().kind == K::no_room)
    for (const place::Verdict& v : a.agent.explain(*request).verdicts)
      refusal.problem.reasons.push_back(fmt::format("device {}: {}", v.index, v.sentence));
  return problem(refusal);
}

HttpAnswer explain(const Asked& a) {
  const auto d = read<api::SliceRequest>(a.request.body);
  if (!d) return problem(d.error());
  const auto request = to_request(a.agent, *d, a.peer.uid);
  if (!request) return problem(refuse(request.error()).value());
  const place::Answer answer = a.agent.explain(*request);
  api::Explanation out;
  out.fits = answer.placement.has_value();
  out.devices = verdicts_of(a.agent, answer);
  if (answer.placement) {
    for (const size_t i : answer.placement->cards) out.chosen.push_back(a.agent.devices()[i].device.index);
    const Strategy strategy = request->strategy.value_or(a.agent.settings().strategy);
    out.sentence =
        fmt::format("it would get {} {}: {}{} ({}: {})", out.chosen.size() == 1 ? "device" : "devices",
                    fmt::join(out.chosen, ", "), text(answer.placement->memory).c_str(),
                    out.chosen.size() == 1 ? "" : " of each", text(strategy), place::choice(strategy));
  } else {
    out.sentence = answer.summary;
  }
  return document(out);
}

std::string who(const Peer& peer) { return peer.uid == 0 ? "root" : fmt::format("uid {}", peer.uid); }

HttpAnswer alter(const Asked& a, const std::string& name) {
  const auto d = read<api::SliceChange>(a.request.body);
  if (!d) return problem(d.error());
  const auto tenant = a.named(name);
  if (!tenant) return problem(tenant.error());
  Alteration asked;
  if (d->memory_bytes) asked.memory = Bytes{*d->memory_bytes};
  if (d->share_bp) asked.share = Share{*d->share_bp};
  if (d->latency) asked.latency = *d->latency ? LatencyClass::latency : LatencyClass::batch;
  if (d->policy) {
    const auto policy = policy_named(*d->policy);
    if (!policy) return problem(refuse(policy.error()).value());
    asked.policy = *policy;
  }
  const auto done = a.agent.alter(**tenant, asked, who(a.peer));
  return done ? document(view(a.look(), **tenant, true)) : problem(refuse(done.error()).value());
}

HttpAnswer node(const Asked& a) { return document(view_node(a.look())); }

HttpAnswer alter_node(const Asked& a) {
  if (!a.sees_all())
    return problem(refuse(403, "carve:not-permitted", "not permitted",
                          "the node's policy is changed by root and by whoever runs the agent")
                       .value());
  const auto d = read<api::NodeChange>(a.request.body);
  if (!d) return problem(d.error());
  const auto policy = policy_named(d->policy);
  if (!policy) return problem(refuse(policy.error()).value());
  const auto done = a.agent.want_policy(*policy, who(a.peer));
  return done ? node(a) : problem(refuse(done.error()).value());
}

constexpr size_t most_spans = 100'000;  // About 11 MB; the newest are told.

// The last N seconds, of the slices that the caller may see.
HttpAnswer trace(const Asked& a) {
  constexpr std::string_view key = "seconds=";
  const std::string_view query = a.request.query;
  unsigned seconds = query.empty() ? 5 : 0;
  if (query.starts_with(key))
    std::from_chars(query.data() + key.size(), query.data() + query.size(), seconds);
  if (seconds < 1 || seconds > longest_trace_s)
    return problem(refuse(400, "carve:bad-request", "the request is wrong",
                          fmt::format("a trace goes back 1 to {} s: ?seconds=5", longest_trace_s))
                       .value());
  TraceNames names;
  for (const NodeDevice& d : a.agent.devices()) {
    const std::string simulated = a.agent.settings().paths.sim_set.empty() ? "" : " (simulated)";
    names.devices.push_back({d.device.uuid, d.device.index, d.device.name + simulated});
  }
  for (const ledger::Use& use : a.agent.ledger().ended())
    if (a.may_see(use)) names.tenants[use.id] = use.what.name;
  for (const auto& [id, tenant] : a.agent.tenants())
    if (a.may_see(tenant->use)) names.tenants[id] = tenant->name();
  const int64_t since = monotonic_ns() - seconds * second;
  const std::vector<TraceSpan> all = a.agent.trace(since);
  const auto spans = std::span(all).last(std::min(all.size(), most_spans));
  return {200, "application/json", chrome_trace(spans, names, since)};
}

HttpAnswer metrics(const Asked& a) { return {200, metrics_type, metrics_text(a.look())}; }

HttpAnswer stop(const Asked& a, const std::string& name) {
  const auto tenant = a.named(name);
  if (!tenant) return problem(tenant.error());
  const uint64_t id = (*tenant)->use.id;
  a.agent.stop(**tenant, "stopped by " + who(a.peer));
  if (Tenant* living = a.agent.find(name); living != nullptr && living->use.id == id)
    return document(view(a.look(), *living, true));
  return document(view(a.agent, a.agent.ledger().ended().back(), true));
}

HttpAnswer enter(const Asked& a, const std::string& name) {
  const auto d = read<api::EnterRequest>(a.request.body);
  if (!d) return problem(d.error());
  const auto tenant = a.named(name);
  if (!tenant) return problem(tenant.error());
  const bool cgroup = (*tenant)->cgroup.has_value();
  Peer peer{a.peer.process, open_process(a.peer.process), a.peer.uid};
  if (!peer.pidfd) return problem(refuse(409, "carve:conflict", "gone", "the caller has ended").value());
  const auto environment = a.agent.enter(**tenant, std::move(peer), d->command.substr(0, 1024),
                                         d->visible_devices_set ? &d->visible_devices : nullptr);
  if (!environment) return problem(refuse(environment.error()).value());
  api::Entered out;
  out.environment = *environment;
  out.cgroup = cgroup;
  return document(out);
}

HttpAnswer supervise(const Asked& a, const std::string& name) {
  const auto tenant = a.named(name);
  if (!tenant) return problem(tenant.error());
  Peer peer{a.peer.process, open_process(a.peer.process), a.peer.uid};
  if (!peer.pidfd) return problem(refuse(409, "carve:conflict", "gone", "the caller has ended").value());
  const auto done = a.agent.supervise(**tenant, std::move(peer));
  return done ? document(api::Nothing{}) : problem(refuse(done.error()).value());
}

HttpAnswer thaw(const Asked& a, const std::string& name) {
  if (!a.sees_all())
    return problem(refuse(403, "carve:not-permitted", "not permitted",
                          "the audit froze it; whoever runs the agent lets it go on")
                       .value());
  const auto tenant = a.named(name);
  if (!tenant) return problem(tenant.error());
  const auto done = a.agent.thaw(**tenant);
  return done ? document(view(a.look(), **tenant, true)) : problem(refuse(done.error()).value());
}

HttpAnswer container(const Asked& a, const std::string& name) {
  if (!a.sees_all())
    return problem(
        refuse(403, "carve:not-permitted", "not permitted", "only root says which container has a slice")
            .value());
  const auto d = read<api::ContainerStarted>(a.request.body);
  if (!d) return problem(d.error());
  const auto tenant = a.named(name);
  if (!tenant) return problem(tenant.error());
  if (d->pid < 2 || d->pid > 1u << 22)
    return problem(
        refuse(400, "carve:bad-request", "the request is wrong", fmt::format("{} is no process", d->pid))
            .value());
  const auto done = a.agent.add_container(**tenant, static_cast<pid_t>(d->pid), d->id);
  return done ? document(api::Nothing{}) : problem(refuse(done.error()).value());
}

HttpAnswer events(const Asked& a) {
  api::EventList list;
  std::set<std::string> seen;  // Names of slices that the caller owns.
  for (const auto& [id, tenant] : a.agent.tenants())
    if (a.may_see(tenant->use)) seen.insert(tenant->name());
  for (const Event& e : a.agent.events())
    if (a.sees_all() || seen.contains(e.slice))
      list.events.push_back({static_cast<uint64_t>(e.utc_ns), e.slice, e.text});
  return document(list);
}

// One row per route; {} stands for a slice's name.
struct Route {
  const char* method;
  const char* path;
  HttpAnswer (*plain)(const Asked&);
  HttpAnswer (*of_slice)(const Asked&, const std::string& name);
};
constexpr Route routes[] = {
    {"GET", "/v1/version", version, nullptr},
    {"GET", "/v1/devices", devices, nullptr},
    {"GET", "/v1/slices", slices, nullptr},
    {"POST", "/v1/slices", create, nullptr},
    {"POST", "/v1/explain", explain, nullptr},
    {"GET", "/v1/doctor", [](const Asked& a) { return document(diagnose(a.agent)); }, nullptr},
    {"GET", "/v1/events", events, nullptr},
    {"GET", "/v1/node", node, nullptr},
    {"PATCH", "/v1/node", alter_node, nullptr},
    {"GET", "/v1/trace", trace, nullptr},
    {"GET", "/metrics", metrics, nullptr},
    {"GET", "/v1/slices/{}", nullptr, show},
    {"PATCH", "/v1/slices/{}", nullptr, alter},
    {"DELETE", "/v1/slices/{}", nullptr, stop},
    {"POST", "/v1/slices/{}/enter", nullptr, enter},
    {"POST", "/v1/slices/{}/thaw", nullptr, thaw},
    {"POST", "/v1/slices/{}/supervise", nullptr, supervise},
    {"POST", "/v1/slices/{}/container", nullptr, container},
};

// The name that stands where the pattern has {}, or nothing where the path is another.
std::optional<std::string> name_in(std::string_view path, std::string_view pattern) {
  const size_t hole = pattern.find("{}");
  if (hole == std::string_view::npos) return path == pattern ? std::optional<std::string>("") : std::nullopt;
  const std::string_view before = pattern.substr(0, hole), after = pattern.substr(hole + 2);
  if (path.size() <= before.size() + after.size() || !path.starts_with(before) || !path.ends_with(after))
    return std::nullopt;
  const std::string_view name = path.substr(before.size(), path.size() - before.size() - after.size());
  return name.find('/') == std::string_view::npos ? std::optional<std::string>(name) : std::nullopt;
}

}  // namespace

Routes::Routes(Agent& agent) : agent_(agent), started_ns_(utc_ns()) {}

HttpAnswer Routes::answer(const HttpRequest& request, Peer& peer) {
  Asked asked{agent_, request, peer, agent_.tenant_of(peer.process.pid), started_ns_};
  bool path_known = false;
  for (const Route& route : routes) {
    const auto name = name_in(request.path, route.path);
    if (!name) continue;
    path_known = true;
    if (request.method != route.method) continue;
    // A slice's program, just before it becomes one, may be a child of the slice's supervisor: it may enter
    // that slice, once. Everybody else inside a tenant has no say here, whatever the uid.
    const bool entering = route.of_slice == enter && asked.inside != nullptr &&
                          asked.inside->name() == *name && !asked.inside->entered;
    if (asked.inside != nullptr && !entering)
      return problem(refuse(403, "carve:inside-a-tenant", "the caller is inside a slice",
                            fmt::format("process {} runs in slice {}; slices are managed from outside",
                                        peer.process.pid, asked.inside->name()))
                         .value());
    log::debug("{} {} by process {} (uid {})", request.method, request.path, peer.process.pid, peer.uid);
    return route.plain != nullptr ? route.plain(asked) : route.of_slice(asked, *name);
  }
  if (path_known)
    return problem(
        refuse(405, "carve:bad-request", "no such method",
               fmt::format("{} does not know {}", request.path.substr(0, 80), request.method.substr(0, 20)))
            .value());
  return problem(
      refuse(404, "carve:not-found", "no such path",
             fmt::format("there is no {} here; the API begins with /v1/", request.path.substr(0, 80)))
          .value());
}

HttpAnswer answer_metrics(const Agent& agent, const HttpRequest& request) {
  if (request.path != "/metrics")
    return problem(refuse(404, "carve:not-found", "no such path",
                          "only /metrics is answered here; the API is on the agent's unix socket")
                       .value());
  if (request.method != "GET")
    return problem(refuse(405, "carve:bad-request", "no such method", "metrics are read with GET").value());
  return {200, metrics_type, metrics_text({agent, [](const ledger::Use&) { return true; }})};
}

}  // namespace carve::node
