#include "kubernetes/coordinator/coordinator.h"

#include <algorithm>
#include <set>

#include "kubernetes/coordinator/cache/cache_views.h"
#include "kubernetes/coordinator/cache/decisions.h"
#include "kubernetes/coordinator/cache/explanation.h"
#include "kubernetes/coordinator/webhook/review.h"
#include "kubernetes/coordinator/webhook/settings_review.h"
#include "os/log.h"
#include "wire/api/exposition.h"

namespace carve::kubernetes::coordinator {
namespace {

constexpr kubernetes::Nanoseconds check_interval_ns = 60 * kubernetes::second_ns;
constexpr kubernetes::Nanoseconds settle_interval_ns = 10 * kubernetes::second_ns;
constexpr size_t max_findings_reported = 32;  // Limits the new findings of one check.
constexpr kubernetes::Nanoseconds same_finding_ns = 600 * kubernetes::second_ns;

http::Response plain(unsigned status, std::string text) {
  return {.status = status, .type = "text/plain", .content = std::move(text) + "\n"};
}

// A review that waits for the settings of its namespace. It is owned by its connection.
struct WaitingReview {
  http::LaterAnswer* later = nullptr;
};

}  // namespace

Coordinator::Cluster::Cluster(Coordinator& c, Strategy strategy)
    : cache(strategy),
      binder(c.client_, cache),
      extender(cache, binder,
               {.fence = [&c] { return c.fence(); },
                .preempts = [&c] { return c.version_.now() && preempts_for_extenders(*c.version_.now()); },
                .not_ready = [this] { return feed.not_ready(); },
                .now = [&c] { return c.client_.now(); },
                .answered = [&c](std::string_view verb, kubernetes::Nanoseconds took,
                                 const std::string& error) { c.count_answer(verb, took, error); },
                .fits =
                    [this, &c](const std::string& uid) {
                      unasked.asked(uid, c.client_.now());
                      retries.forget(uid);
                    },
                .waits =
                    [this, &c](const kubernetes::ObjectMeta& pod, std::span<const std::string_view> nodes,
                               const std::function<std::string()>& why) {
                      unasked.asked(pod.uid, c.client_.now());
                      if (!c.is_active()) return;
                      c.events_.waits(pod, why);
                      retries.refused(pod, nodes);
                    }}),
      retries(c.client_, cache, [this, &c] { return write_problem(c); }),
      resizes(c.client_, cache, c.events_, [this, &c] { return write_problem(c); }),
      feed(c.client_, cache,
           {.listed = [this](const kubernetes::ObjectsByUid& pods) { resizes.listed(pods); },
            .seen = [this](const kubernetes::ObjectMeta& pod) { resizes.consider(pod); },
            .gone =
                [this, &c](const std::string& uid) {
                  unasked.forget(uid);
                  c.events_.forget(uid);
                  retries.forget(uid);
                  resizes.forget(uid);
                },
            .node = [this](const kubernetes::ObjectMeta& node) { resizes.node_seen(node); }},
           c.settings_.seed) {}

std::string Coordinator::Cluster::write_problem(const Coordinator& c) const {
  const std::string why = feed.not_ready();
  return why.empty() ? c.fence() : why;
}

Coordinator::Coordinator(kubernetes::ApiClient& client, CoordinatorSettings settings)
    : client_(client),
      settings_(std::move(settings)),
      started_(client.now()),
      events_(client, settings_.host, settings_.utc_ns),
      namespaces_(client),
      readers_(client),
      version_(client),
      cluster_settings_(
          client, settings_.name_space, [this] { settings_changed(); }, settings_.seed + 3),
      budgets_(client, settings_.name_space, settings_.seed + 4),
      lease_(client, settings_.lease_path, settings_.host, [this](bool is_held) { lease_changed(is_held); }) {
  settle();
}

void Coordinator::settings_changed() {
  const Strategy strategy = cluster_settings_.now()->strategy;
  os::log::info("settings read: memory unit {}, strategy {}", text(cluster_settings_.now()->unit),
                text(strategy));
  if (!cluster_) {
    strategy_ = strategy;
    cluster_.emplace(*this, strategy);
    if (is_active()) list_for_this_term();
  } else if (strategy != *strategy_) {
    os::log::warning("strategy {} takes effect when the coordinator restarts; the current one is {}",
                     text(strategy), text(*strategy_));
  }
  if (is_active()) cluster_settings_.mark_effective(*strategy_);
}

// A coordinator that was killed may have a write in progress, so its successor on this host starts its list
// after that write must have ended. Between two hosts, the Lease's duration ensures this. If the Lease had no
// other holder since the last list, because the API server was unreachable or the scheduler stopped for some
// seconds, all bindings were made by this coordinator and are in its cache.
void Coordinator::list_for_this_term() {
  const std::string term = lease_.term();
  if (!term.empty() && term == listed_term_) return;
  listed_term_ = term;
  cluster_->feed.list_pods_again(started_ + kubernetes::max_fenced_write_ns);
}

void Coordinator::lease_changed(bool is_held) {
  os::log::info("{}", is_held ? "active: the scheduler of this replica holds the Lease"
                              : "not active: " + lease_.problem());
  if (!is_held || !cluster_) return;
  list_for_this_term();
  cluster_settings_.mark_effective(*strategy_);
}

void Coordinator::settle() {
  timer_ = client_.after(settle_interval_ns, [this] { settle(); });
  if (!cluster_ || !cluster_->feed.not_ready().empty()) return;
  if (is_active()) {
    cluster_settings_.mark_effective(*strategy_);
    cluster_settings_.settle_unit([this] { return pods_in_units(cluster_->cache); });
    cluster_->resizes.consider_all();
    report_unasked();
  }
  if (client_.now() < check_at_) return;
  check_at_ = client_.now() + check_interval_ns;
  check();
}

// The scheduler's own event only reports that a total is too small; this one reports what would make room.
void Coordinator::report_unasked() {
  Cache& cache = cluster_->cache;
  for (const std::string& uid : cluster_->unasked.due(waiting_pods(cache), client_.now())) {
    if (fits_somewhere(cache, uid)) continue;  // The scheduler has other reasons and reports them.
    const std::string full_name = full_name_of(cache, uid);
    const size_t slash = full_name.find('/');
    events_.waits({.name_space = full_name.substr(0, slash), .name = full_name.substr(slash + 1), .uid = uid},
                  [&] { return explain_waiting(cache, uid); });
  }
}

void Coordinator::check() {
  const ClusterFindings found = check_cluster(cluster_->cache, cluster_->feed.nodes().by_uid());
  counts_.overcommitted_devices = found.overcommitted_devices;
  counts_.drifting_devices = found.drifting_devices;
  if (is_active()) report(found.findings);
}

// Writes one event per finding while the finding lasts, and another one if it returns after 10 minutes.
// Findings beyond max_findings_reported wait for the next checks.
void Coordinator::report(const std::vector<Finding>& findings) {
  const kubernetes::Nanoseconds now = client_.now();
  std::set<std::string> current;
  size_t reported = 0;
  for (const Finding& finding : findings) {
    const std::string key = fmt::format("{} {}: {}", finding.kind, finding.name, finding.message);
    current.insert(key);
    if (reported_.contains(key) || reported++ >= max_findings_reported) continue;
    reported_[key] = now;
    os::log::error("{}", key);
    if (const auto object = object_of(finding))
      events_.write(*object, {.kind = finding.kind,
                              .reason = finding.reason,
                              .action = finding.action,
                              .message = finding.message});
  }
  std::erase_if(reported_, [&](const auto& entry) {
    return !current.contains(entry.first) && now - entry.second >= same_finding_ns;
  });
}

// Returns the metadata of the object that an event needs.
std::optional<kubernetes::ObjectMeta> Coordinator::object_of(const Finding& finding) const {
  if (finding.kind == "Pod") {
    const size_t slash = finding.name.find('/');
    return kubernetes::ObjectMeta{.name_space = finding.name.substr(0, slash),
                                  .name = finding.name.substr(slash + 1),
                                  .uid = uid_of(cluster_->cache, finding.name)};
  }
  for (const auto& [uid, node] : cluster_->feed.nodes().by_uid())
    if (node.name == finding.name) return node;
  return std::nullopt;
}

std::string Coordinator::fence() const {
  if (lease_.is_held()) return "";
  const std::string& why = lease_.problem();
  return "the scheduler of this coordinator does not hold the Lease" + (why.empty() ? "" : ": " + why);
}

void Coordinator::count_answer(std::string_view verb, kubernetes::Nanoseconds took,
                               const std::string& error) {
  VerbFigures& figures = counts_.verbs[std::string(verb)];
  ++figures.answers;
  figures.took_ns += static_cast<uint64_t>(took);
  if (verb == "bind") ++counts_.binds[error.empty() ? "bound" : "refused"];
}

http::Response Coordinator::extender(const http::Request& request) {
  if (!cluster_) return plain(503, cluster_settings_.problem());
  return cluster_->extender.handle(request);
}

http::Response Coordinator::webhook(const http::Request& request) {
  if (request.path == "/metrics" && request.method == "GET")
    return readers_.answer(request, [this, format = api::metrics_format(request.headers.find("Accept"))](
                                        const kubernetes::ReaderCheck::Done& done) {
      done({.type = api::metrics_type(format), .content = metrics_text(figures(), format)});
    });
  const bool is_pod = request.path == "/mutate", is_settings = request.path == "/settings";
  if (!is_pod && !is_settings) return plain(404, "unknown path; use /mutate, /settings or /metrics");
  if (request.method != "POST") return plain(405, "use POST");
  if (is_pod) return mutate(request);
  if (!cluster_) return plain(503, cluster_settings_.problem());
  const bool is_beside_own = settings_.lease_path.ends_with("/carve-system/leases/carve-scheduler");
  const auto answer = review_settings(request.body, pods_in_units(cluster_->cache),
                                      is_beside_own ? SchedulerBeside::own : SchedulerBeside::of_cluster);
  return answer ? http::Response{.content = *answer} : plain(400, answer.error());
}

dialects::PodSettings Coordinator::pod_settings_now() {
  dialects::PodSettings out = pod_settings(*cluster_settings_.now(), device_models(cluster_->cache));
  out.allows_unknown_gpu_requests = settings_.allows_unknown_gpu_requests;
  return out;
}

http::Response Coordinator::mutate(const http::Request& request) {
  if (!cluster_) return plain(503, cluster_settings_.problem());
  const auto review = review_pod(request.body, pod_settings_now());
  if (!review) return plain(400, review.error());
  if (!review->request) return finish_review(*review);
  if (const NamespaceRules* rules = namespaces_.find(review->name_space))
    return finish_review(in_cluster(*review, *rules));
  auto waiting = std::make_shared<WaitingReview>();
  namespaces_.read(review->name_space, [this, waiting, review = *review](const NamespaceRules* rules,
                                                                         const std::string& problem) {
    const PodReview end = rules != nullptr ? in_cluster(review, *rules) : without_namespace(review, problem);
    http::Response response = finish_review(end);
    if (waiting->later != nullptr) std::exchange(waiting->later, nullptr)->answer(std::move(response));
  });
  return {.content = http::LaterContent{[waiting](http::LaterAnswer& later) {
            waiting->later = &later;
            return std::shared_ptr<void>(waiting.get(), [waiting](void*) { waiting->later = nullptr; });
          }}};
}

PodReview Coordinator::in_cluster(PodReview review, const NamespaceRules& rules) const {
  return within_budget(in_namespace(std::move(review), rules, cluster_settings_.now()->is_sharing),
                       budgets_.now(), settings_.utc_ns());
}

http::Response Coordinator::finish_review(const PodReview& review) {
  const char* const result = !review.is_allowed ? "refused" : review.request ? "sliced" : "unchanged";
  ++counts_.webhook[{review.request ? review.request->dialect : "none", result}];
  return {.content = review.answer};
}

http::Response Coordinator::health(const http::Request& request) {
  if (request.path == "/healthz") return plain(200, "ok");
  if (request.path != "/readyz") return plain(404, "unknown path; use /healthz or /readyz");
  const std::string why = not_ready();
  return why.empty() ? plain(200, "ok") : plain(503, why);
}

std::string Coordinator::not_ready() const {
  if (!cluster_) return cluster_settings_.problem();
  if (std::string why = cluster_->feed.not_ready(); !why.empty()) return why;
  return settings_.certificate_problem();
}

CoordinatorFigures Coordinator::figures() const {
  CoordinatorFigures out = counts_;
  out.version = settings_.version;
  out.is_active = is_active();
  if (!cluster_) return out;
  out.cached_pods = cluster_->cache.pods().size();
  out.open_binds = cluster_->binder.open();
  const auto lag = [&](const kubernetes::ObjectWatch& objects) {
    return objects.heard_at() == 0 ? 0 : static_cast<uint64_t>(client_.now() - objects.heard_at());
  };
  out.watch_lag_ns = {{"nodes", lag(cluster_->feed.nodes())}, {"pods", lag(cluster_->feed.pods())}};
  out.relists = {{"nodes", std::max<uint64_t>(cluster_->feed.nodes().lists(), 1) - 1},
                 {"pods", std::max<uint64_t>(cluster_->feed.pod_lists(), 1) - 1}};
  const ClusterSettings& settings = *cluster_settings_.now();
  out.pending = {{"gpuMemoryUnit", settings.when_free && *settings.when_free != settings.unit},
                 {"strategy", settings.strategy != *strategy_}};
  for (const auto& [name, problem] : unreadable_objects(cluster_->cache))
    ++out.unreadable[name.starts_with("node ") ? "nodes" : "pods"];
  return out;
}

}  // namespace carve::kubernetes::coordinator
