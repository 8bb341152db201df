#include "workload/service.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace carve::workload {
namespace {

using ServiceKind = ServiceAction::Kind;
using ServiceReason = ServiceAction::Reason;

// Returns the time from which the replica is ready, or no value if it is not.
std::optional<Ns> ready_from(const Service& service, const Replica& replica) {
  if (replica.program != ProgramState::running) return std::nullopt;
  if (service.has_port) return replica.probe.ready_since;
  return after(replica.program_since, ready_without_port_ns);
}

bool is_ready(const Service& service, const Replica& replica, Ns now) {
  const auto from = ready_from(service, replica);
  return from && *from <= now;
}

bool is_available(const Service& service, const Replica& replica, Ns now) {
  const auto from = ready_from(service, replica);
  return !replica.retired_at && from && after(*from, min_ready_ns) <= now;
}

bool is_desired(const Service& service, const Replica& replica) {
  return replica.id.revision == service.revision && ordinal(replica.id) < service.replicas;
}

}  // namespace

bool has_run(const Service& service, const Replica& replica) {
  if (replica.program != ProgramState::exited || replica.end == ProgramEnd::lost) return false;
  return service.restart_policy == RestartPolicy::never ||
         (service.restart_policy == RestartPolicy::on_failure && replica.end == ProgramEnd::succeeded);
}

namespace {

// Returns whether the programs of all desired replicas have ended for good, and there are no other replicas.
bool is_finished(const Service& service, const ServiceObserved& observed) {
  return service.replicas != 0 && observed.requested.empty() &&
         observed.replicas.size() == service.replicas &&
         std::ranges::all_of(observed.replicas, [&](const Replica& r) {
           return r.id.revision == service.revision && !r.retired_at && has_run(service, r);
         });
}

// Returns whether the desired replicas are available and there are no others.
bool is_complete(const Service& service, const ServiceObserved& observed, Ns now) {
  return observed.requested.empty() && observed.replicas.size() == service.replicas &&
         std::ranges::all_of(observed.replicas, [&](const Replica& r) {
           return is_desired(service, r) && !r.must_move && is_available(service, r, now);
         });
}

// Decides one pass. Replicas that the pass retires are removed from `alive_` and stay in `observed_`.
class ServicePass {
 public:
  ServicePass(const Service& service, const ServiceObserved& observed, Ns now)
      : service_(service), observed_(observed), now_(now) {
    for (const Replica& replica : observed.replicas) all_.push_back(&replica);
    std::ranges::sort(all_, {}, [](const Replica* replica) { return replica->id; });
    for (const Replica* replica : all_)
      if (!replica->retired_at) alive_.push_back(replica);
  }

  std::vector<ServiceAction> run() {
    for (const Replica* replica : all_) replica->retired_at ? stop(*replica) : serve(*replica);
    retire_excess();
    retire_replaced();
    retire_moved();
    retire_within_allowance();
    create();
    return std::move(actions_);
  }

 private:
  const Refusal* refusal() const {
    const bool present = observed_.refusal && observed_.refusal->revision == service_.revision;
    return present ? &*observed_.refusal : nullptr;
  }

  void add(ServiceKind kind, const Replica& replica, ServiceReason reason) {
    actions_.push_back({.kind = kind, .replica = replica.id, .reason = reason});
  }

  void serve(const Replica& replica) {
    const bool ready = is_ready(service_, replica, now_);
    if (!ready && replica.endpoint == EndpointState::serving)
      add(ServiceKind::withdraw, replica, ServiceReason::not_ready);
    if (ready && service_.has_port && replica.endpoint != EndpointState::serving)
      add(ServiceKind::publish, replica, ServiceReason::desired);
    if (replica.program == ProgramState::not_started)
      add(ServiceKind::start, replica, ServiceReason::desired);
    if (replica.program == ProgramState::exited && !has_run(service_, replica) &&
        after(replica.program_since, backoff_ns(replica.failures)) <= now_)
      add(ServiceKind::start, replica, ServiceReason::program_ended);
  }

  // Adds the next action towards the end of a retired replica: withdrawing its endpoint, terminating its
  // program, killing the program after the grace period, or ending its slice.
  void stop(const Replica& replica) {
    if (replica.endpoint == EndpointState::serving)
      return add(ServiceKind::withdraw, replica, ServiceReason::retired);
    if (replica.program != ProgramState::running)
      return add(ServiceKind::end_slice, replica, ServiceReason::retired);
    if (replica.is_starting && after(*replica.retired_at, service_.grace) > now_)
      return add(ServiceKind::terminate, replica, ServiceReason::retired);
    if (replica.is_starting) return add(ServiceKind::kill, replica, ServiceReason::grace_period_is_over);
    if (!replica.terminated_at) {
      if (replica.endpoint == EndpointState::absent)
        return add(ServiceKind::terminate, replica, ServiceReason::retired);
      if (after(*replica.retired_at, service_.grace) <= now_)
        add(ServiceKind::terminate, replica, ServiceReason::grace_period_is_over);
    } else if (after(*replica.terminated_at, service_.grace) <= now_) {
      add(ServiceKind::kill, replica, ServiceReason::grace_period_is_over);
    }
  }

  // A replica that is retired is neither started nor published in the same pass.
  void retire(const Replica& replica, ServiceReason reason) {
    std::erase_if(actions_, [&](const ServiceAction& action) {
      return action.replica == replica.id &&
             (action.kind == ServiceKind::start || action.kind == ServiceKind::publish);
    });
    add(ServiceKind::retire, replica, reason);
    std::erase(alive_, &replica);
  }

  void retire_excess() {
    std::vector<const Replica*> excess;
    for (const Replica* replica : alive_)
      if (ordinal(replica->id) >= service_.replicas) excess.push_back(replica);
    std::ranges::stable_sort(excess, std::greater{},
                             [](const Replica* replica) { return ordinal(replica->id); });
    for (const Replica* replica : excess) retire(*replica, ServiceReason::scaled_down);
  }

  // Returns which of an ordinal's replicas is kept until its successor is available: the newest available
  // replica, otherwise the newest ready one, otherwise the oldest.
  const Replica* kept(std::span<const Replica* const> old) const {
    const auto available = std::ranges::find_if(
        old.rbegin(), old.rend(), [&](const Replica* r) { return is_available(service_, *r, now_); });
    if (available != old.rend()) return *available;
    const auto ready = std::ranges::find_if(old.rbegin(), old.rend(),
                                            [&](const Replica* r) { return is_ready(service_, *r, now_); });
    return ready != old.rend() ? *ready : old.front();
  }

  void retire_replaced() {
    for (unsigned index = 0; index < service_.replicas; ++index) {
      std::vector<const Replica*> old;  // Ordered by their revisions.
      bool replaced = false;
      for (const Replica* replica : alive_) {
        if (ordinal(replica->id) != index) continue;
        if (replica->id.revision != service_.revision)
          old.push_back(replica);
        else
          replaced |= is_available(service_, *replica, now_);
      }
      if (old.empty()) continue;
      const Replica* stays = replaced ? nullptr : kept(old);
      for (const Replica* replica : old)
        if (replica != stays)
          retire(*replica, replaced ? ServiceReason::replaced : ServiceReason::superseded);
    }
  }

  // Retires surplus replicas of the current revision. Each ordinal keeps one, or two if one of them is on a
  // drained node and the other is its successor.
  void retire_moved() {
    for (unsigned index = 0; index < service_.replicas; ++index) {
      std::vector<const Replica*> moving, settled;
      for (const Replica* replica : alive_)
        if (replica->id.revision == service_.revision && ordinal(replica->id) == index)
          (replica->must_move ? moving : settled).push_back(replica);
      retire_others(moving);
      retire_others(settled);
      if (moving.empty() || settled.empty()) continue;
      if (is_available(service_, *settled.front(), now_) || !is_ready(service_, *moving.front(), now_))
        retire(*moving.front(), ServiceReason::moved);
    }
  }

  void retire_others(std::vector<const Replica*>& same) {
    if (same.size() < 2) return;
    const Replica* stays = kept(same);
    for (const Replica* replica : same)
      if (replica != stays) retire(*replica, ServiceReason::superseded);
    same = {stays};
  }

  // Retires as many old replicas before their successors are available as the allowance permits. Unavailable
  // replicas come first, and among these, those that are not ready. A new replica that is not available yet
  // uses up one of the allowance. An available replica is retired only if enough are left, because
  // unavailable ones may already have used up the allowance.
  void retire_within_allowance() {
    const bool no_surge = refusal() != nullptr && service_.rollout.max_unavailable == 0;
    const int64_t allowance = no_surge ? 1 : service_.rollout.max_unavailable;
    int64_t budget =
        static_cast<int64_t>(alive_.size()) - std::max<int64_t>(service_.replicas - allowance, 0);
    std::vector<const Replica*> old;
    for (const Replica* replica : alive_)
      if (!is_desired(service_, *replica))
        old.push_back(replica);
      else if (!is_available(service_, *replica, now_))
        --budget;
    std::ranges::stable_sort(old, {}, [&](const Replica* r) {
      return std::tuple{is_available(service_, *r, now_), is_ready(service_, *r, now_), r->must_move,
                        r->id.index};
    });
    if (budget <= 0) return;
    for (const Replica* replica : making_room(std::move(old), static_cast<size_t>(budget)))
      retire(*replica, no_surge ? ServiceReason::no_surge_capacity : ServiceReason::may_be_unavailable);
  }

  // Returns the first `count` replicas whose ends each make room for a successor. If no single one makes
  // room, returns the first `count` of all replicas if these together do, otherwise none.
  std::vector<const Replica*> making_room(std::vector<const Replica*> old, size_t count) const {
    const auto fits = [&](std::span<const Replica* const> ended) {
      std::vector<ReplicaId> ids;
      for (const Replica* replica : ended) ids.push_back(replica->id);
      return !observed_.fits_without || observed_.fits_without(ids);
    };
    std::vector<const Replica*> out;
    for (const Replica* replica : old)
      if (out.size() < count && fits(std::span(&replica, 1))) out.push_back(replica);
    if (!out.empty()) return out;
    old.resize(std::min(count, old.size()));
    return old.size() > 1 && fits(old) ? old : out;
  }

  // Creates missing replicas, first those whose index has no replica at all. A slice name can be reused only
  // after its earlier slice has ended.
  void create() {
    const Refusal* refused = refusal();
    if (refused != nullptr && now_ < after(refused->at, backoff_ns(refused->times))) return;
    std::set<uint32_t> taken, served, settled, moving;  // Indexes, then ordinals.
    for (const Replica* replica : all_)
      if (replica->id.revision == service_.revision) taken.insert(replica->id.index);
    for (const ReplicaId& id : observed_.requested)
      if (id.revision == service_.revision) taken.insert(id.index), settled.insert(ordinal(id));
    for (const Replica* replica : alive_) {
      served.insert(ordinal(replica->id));
      if (replica->id.revision == service_.revision)
        (replica->must_move ? moving : settled).insert(ordinal(replica->id));
    }
    size_t held = all_.size() + observed_.requested.size();
    for (const bool has_old : {false, true})
      for (uint32_t index = 0; index < service_.replicas; ++index) {
        if (settled.contains(index) || served.contains(index) != has_old) continue;
        // A replica that moves always has a surge of one, because it does not end before its successor is
        // running.
        const bool moves = moving.contains(index);
        const unsigned surge = std::max(service_.rollout.max_surge, moves ? 1u : 0u);
        const uint32_t free = moves && taken.contains(index) ? index + max_replicas : index;
        if (taken.contains(free) || held >= size_t{service_.replicas} + surge) continue;
        actions_.push_back({.kind = ServiceKind::create_slice, .replica = {service_.revision, free}});
        ++held;
      }
  }

  const Service& service_;
  const ServiceObserved& observed_;
  const Ns now_;
  std::vector<const Replica*> all_;    // Ordered by their ids.
  std::vector<const Replica*> alive_;  // Not retired.
  std::vector<ServiceAction> actions_;
};

// Returns the time of the rollout's last step, which is when a replica of the current revision last became
// available.
Ns progressed_at(const Service& service, const ServiceObserved& observed, Ns now) {
  Ns last = service.revised_at;
  for (const Replica& replica : observed.replicas)
    if (is_desired(service, replica) && is_available(service, replica, now))
      last = std::max(last, after(*ready_from(service, replica), min_ready_ns));
  return last;
}

}  // namespace

Outcome<Service> validated(Service service) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  const std::string& name = service.name;
  if (name.empty() || name.size() > max_service_name_bytes || !letter(name.front()) || !letter(name.back()) ||
      !std::ranges::all_of(name, [&](char c) { return letter(c) || c == '-'; }))
    return failure(FailureKind::invalid_argument,
                   "'{}' is not a service name; use 1 to {} characters from a-z, 0-9 and -, with a letter or "
                   "digit first and last",
                   name.substr(0, 80), max_service_name_bytes);
  if (service.replicas > max_replicas)
    return failure(FailureKind::invalid_argument, "{} replicas are requested; a service can have at most {}",
                   service.replicas, max_replicas);
  const Rollout& rollout = service.rollout;
  if (rollout.max_surge > max_replicas || rollout.max_unavailable > max_replicas)
    return failure(FailureKind::invalid_argument, "maxSurge {} and maxUnavailable {}: each must be 0 to {}",
                   rollout.max_surge, rollout.max_unavailable, max_replicas);
  if (rollout.max_surge == 0 && rollout.max_unavailable == 0)
    return failure(
        FailureKind::invalid_argument,
        "maxSurge 0 and maxUnavailable 0: no replica can be replaced; set one of them to 1 or more");
  if (rollout.progress_deadline <= 0)
    return failure(FailureKind::invalid_argument, "progressDeadlineSeconds must be 1 or more");
  if (service.grace < 0)
    return failure(FailureKind::invalid_argument, "the grace period must be 0 or more seconds");
  return service;
}

std::string slice_name(const Service& service, ReplicaId id) {
  return fmt::format("{}-{}-{}", service.name, id.revision, id.index);
}

Probe probe_succeeded(Probe probe, Ns now) {
  return {.failures = 0, .ready_since = probe.ready_since.value_or(now)};
}

Probe probe_failed(Probe probe) {
  if (probe.failures < probe_failures) ++probe.failures;
  if (probe.failures == probe_failures) probe.ready_since.reset();
  return probe;
}

std::vector<ServiceAction> actions(const Service& service, const ServiceObserved& observed, Ns now) {
  if (is_finished(service, observed))
    return {{.kind = ServiceKind::finish, .replica = {service.revision, 0}}};
  std::vector<ServiceAction> list = ServicePass(service, observed, now).run();
  if (observed.complete_revision != service.revision && is_complete(service, observed, now))
    list.push_back({.kind = ServiceKind::complete, .replica = {service.revision, 0}});
  return list;
}

ServiceStatus status(const Service& service, const ServiceObserved& observed, Ns now) {
  ServiceStatus status;
  bool others = false;  // There are replicas that are not desired.
  for (const Replica& replica : observed.replicas) {
    const bool desired = is_desired(service, replica) && !replica.retired_at && !replica.must_move;
    const bool available = is_available(service, replica, now);
    others |= !desired;
    status.ready += !replica.retired_at && is_ready(service, replica, now);
    status.available += available;
    status.updated += desired && available;
    status.crash_looping +=
        !replica.retired_at && replica.program == ProgramState::exited && !has_run(service, replica);
  }
  const bool complete = is_complete(service, observed, now);
  status.lacks_capacity = !complete && observed.refusal && observed.refusal->revision == service.revision;
  const Ns deadline = after(progressed_at(service, observed, now), service.rollout.progress_deadline);
  status.progressing = complete || observed.complete_revision == service.revision || now < deadline;
  if (complete)
    status.phase = service.replicas == 0 ? ServicePhase::stopped : ServicePhase::running;
  else if (!status.progressing)
    status.phase = ServicePhase::failed;
  else
    status.phase = others ? ServicePhase::updating : ServicePhase::waiting;
  return status;
}

}  // namespace carve::workload
