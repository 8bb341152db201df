#include "cluster/coordinator.h"

#include <algorithm>

#include "cluster/webhook/review.h"
#include "cluster/webhook/settings_review.h"
#include "os/log.h"

namespace carve::cluster {
namespace {

constexpr kube::Nanoseconds check_interval_ns = 60 * kube::second_ns;
constexpr kube::Nanoseconds settle_interval_ns = 10 * kube::second_ns;
constexpr size_t max_findings_told = 32;  // New ones of one check.

http::Response plain(unsigned status, std::string text) {
  return {.status = status, .type = "text/plain", .content = std::move(text) + "\n"};
}

// A review that waits for the rules of its namespace. The connection holds it.
struct WaitingReview {
  http::LaterAnswer* later = nullptr;
};

}  // namespace

Coordinator::Cluster::Cluster(Coordinator& c, Strategy strategy)
    : books(strategy),
      binder(c.client_, books),
      extender(books, binder,
               {.fence = [&c] { return c.fence(); },
                .preempts = [&c] { return c.version_.now() && preempts_for_extenders(*c.version_.now()); },
                .not_ready = [this] { return feed.not_ready(); },
                .now = [&c] { return c.client_.now(); },
                .answered = [&c](std::string_view verb, kube::Nanoseconds took,
                                 const std::string& error) { c.count_answer(verb, took, error); },
                .fits = [this](const std::string& uid) { retries.forget(uid); },
                .waits =
                    [this, &c](const kube::ObjectMeta& pod, std::span<const std::string_view> nodes,
                               const std::function<std::string()>& why) {
                      if (!c.is_active()) return;
                      c.events_.waits(pod, why);
                      retries.refused(pod, nodes);
                    }}),
      retries(c.client_, books, [this, &c] { return write_problem(c); }),
      wishes(c.client_, books, c.events_, [this, &c] { return write_problem(c); }),
      feed(c.client_, books,
           {.listed = [this](const kube::ObjectsByUid& pods) { wishes.listed(pods); },
            .seen = [this](const kube::ObjectMeta& pod) { wishes.consider(pod); },
            .gone =
                [this, &c](const std::string& uid) {
                  c.events_.forget(uid);
                  retries.forget(uid);
                  wishes.forget(uid);
                }},
           c.settings_.seed) {}

std::string Coordinator::Cluster::write_problem(const Coordinator& c) const {
  const std::string why = feed.not_ready();
  return why.empty() ? c.fence() : why;
}

Coordinator::Coordinator(kube::ApiClient& client, CoordinatorSettings settings)
    : client_(client),
      settings_(std::move(settings)),
      started_(client.now()),
      events_(client, settings_.host, settings_.utc_ns),
      namespaces_(client),
      readers_(client),
      version_(client),
      cluster_settings_(client, settings_.name_space, [this] { settings_changed(); }),
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
    os::log::warning("strategy {} takes effect when the coordinator is restarted; it has {}", text(strategy),
                     text(*strategy_));
  }
}

// A coordinator that was killed may have sent a write that is not over. Its successor on this host begins its
// list when it is. Between two hosts the Lease's duration is longer than both. If no other holder was there
// since the last list, because the API server was away or the scheduler stopped for some seconds, all writes
// were this coordinator's own, and are in its books.
void Coordinator::list_for_this_term() {
  const std::string term = lease_.term();
  if (!term.empty() && term == listed_term_) return;
  listed_term_ = term;
  cluster_->feed.list_pods_again(started_ + kube::max_fenced_write_ns);
}

void Coordinator::lease_changed(bool is_held) {
  os::log::info("{}", is_held ? "active: the scheduler beside this replica holds the Lease"
                              : "not active: " + lease_.problem());
  if (is_held && cluster_) list_for_this_term();
}

void Coordinator::settle() {
  timer_ = client_.after(settle_interval_ns, [this] { settle(); });
  if (!cluster_ || !cluster_->feed.not_ready().empty()) return;
  if (is_active()) {
    cluster_settings_.settle_unit([this] { return cluster_->books.pods_in_units(); });
    cluster_->wishes.consider_all();
  }
  if (client_.now() < check_at_) return;
  check_at_ = client_.now() + check_interval_ns;
  check();
}

void Coordinator::check() {
  const ClusterFindings found = check_cluster(cluster_->books, cluster_->feed.nodes().by_uid());
  counts_.overcommitted_devices = found.overcommitted_devices;
  counts_.drifting_devices = found.drifting_devices;
  if (is_active()) report(found.findings);
}

// What was found is told again when its sentence changes, or after it was gone. What is too much for one
// check is told in the next ones.
void Coordinator::report(const std::vector<Finding>& findings) {
  std::set<std::string> sentences;
  size_t told = 0;
  for (const Finding& finding : findings) {
    const std::string key = fmt::format("{} {}: {}", finding.kind, finding.name, finding.sentence);
    if (reported_.contains(key)) {
      sentences.insert(key);
      continue;
    }
    if (told++ >= max_findings_told) continue;
    sentences.insert(key);
    os::log::error("{}", key);
    if (const auto object = object_of(finding))
      events_.write(*object, {.kind = finding.kind,
                              .reason = finding.reason,
                              .action = finding.action,
                              .sentence = finding.sentence});
  }
  reported_ = std::move(sentences);
}

// What an event needs of the object.
std::optional<kube::ObjectMeta> Coordinator::object_of(const Finding& finding) const {
  if (finding.kind == "Pod") {
    const size_t slash = finding.name.find('/');
    return kube::ObjectMeta{.name_space = finding.name.substr(0, slash),
                            .name = finding.name.substr(slash + 1),
                            .uid = cluster_->books.uid_of(finding.name)};
  }
  for (const auto& [uid, node] : cluster_->feed.nodes().by_uid())
    if (node.name == finding.name) return node;
  return std::nullopt;
}

std::string Coordinator::fence() const {
  if (lease_.is_held()) return "";
  const std::string& why = lease_.problem();
  return "the scheduler beside this coordinator does not hold the Lease" + (why.empty() ? "" : ": " + why);
}

void Coordinator::count_answer(std::string_view verb, kube::Nanoseconds took, const std::string& error) {
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
    return readers_.answer(request,
                           [this](const kube::ReaderCheck::Done& done) { done(metrics_text(figures())); });
  const bool is_pod = request.path == "/mutate", is_settings = request.path == "/settings";
  if (!is_pod && !is_settings) return plain(404, "there are /mutate, /settings and /metrics");
  if (request.method != "POST") return plain(405, "use POST");
  if (is_pod) return mutate(request);
  if (!cluster_) return plain(503, cluster_settings_.problem());
  const auto answer = review_settings(request.body, cluster_->books.pods_in_units());
  return answer ? http::Response{.content = *answer} : plain(400, answer.error());
}

fronts::PodSettings Coordinator::pod_settings_now() {
  return pod_settings(*cluster_settings_.now(), cluster_->books.models());
}

http::Response Coordinator::mutate(const http::Request& request) {
  if (!cluster_) return plain(503, cluster_settings_.problem());
  const auto review = review_pod(request.body, pod_settings_now());
  if (!review) return plain(400, review.error());
  if (!review->request) return finish_review(*review);
  const bool shares = cluster_settings_.now()->is_sharing;
  if (const NamespaceRules* rules = namespaces_.find(review->name_space))
    return finish_review(in_namespace(*review, *rules, shares));
  auto waiting = std::make_shared<WaitingReview>();
  namespaces_.read(review->name_space, [this, waiting, shares, review = *review](const NamespaceRules* rules,
                                                                                 const std::string& problem) {
    const PodReview end =
        rules != nullptr ? in_namespace(review, *rules, shares) : without_namespace(review, problem);
    http::Response response = finish_review(end);
    if (waiting->later != nullptr) std::exchange(waiting->later, nullptr)->answer(std::move(response));
  });
  return {.content = http::LaterContent{[waiting](http::LaterAnswer& later) {
            waiting->later = &later;
            return std::shared_ptr<void>(waiting.get(), [waiting](void*) { waiting->later = nullptr; });
          }}};
}

http::Response Coordinator::finish_review(const PodReview& review) {
  const char* const result = !review.is_allowed ? "refused" : review.request ? "sliced" : "unchanged";
  ++counts_.webhook[{review.request ? review.request->dialect : "none", result}];
  return {.content = review.answer};
}

http::Response Coordinator::health(const http::Request& request) {
  if (request.path == "/healthz") return plain(200, "ok");
  if (request.path != "/readyz") return plain(404, "there are /healthz and /readyz");
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
  out.books_pods = cluster_->books.pods();
  out.open_binds = cluster_->binder.open();
  const auto lag = [&](const kube::ObjectWatch& objects) {
    return objects.heard_at() == 0 ? 0 : static_cast<uint64_t>(client_.now() - objects.heard_at());
  };
  out.watch_lag_ns = {{"nodes", lag(cluster_->feed.nodes())}, {"pods", lag(cluster_->feed.pods())}};
  out.relists = {{"nodes", std::max<uint64_t>(cluster_->feed.nodes().lists(), 1) - 1},
                 {"pods", std::max<uint64_t>(cluster_->feed.pod_lists(), 1) - 1}};
  const ClusterSettings& settings = *cluster_settings_.now();
  out.pending = {{"gpuMemoryUnit", settings.when_free && *settings.when_free != settings.unit},
                 {"strategy", settings.strategy != *strategy_}};
  for (const auto& [name, problem] : cluster_->books.problems())
    ++out.unreadable[name.starts_with("node ") ? "nodes" : "pods"];
  return out;
}

}  // namespace carve::cluster
