// The coordinator without its sockets: the cache and its feed, the extender, the webhooks, health and
// metrics. It uses an ApiClient, so tests run it under virtual time.
//
// All replicas keep a cache and serve the webhooks. Only the replica whose scheduler holds the Lease writes
// bindings, events and the ConfigMap (docs/decisions/0018-the-schedulers-lease.md).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "http/message.h"
#include "kubernetes/api/access/reader_check.h"
#include "kubernetes/api/watched_lease.h"
#include "kubernetes/coordinator/cache_feed.h"
#include "kubernetes/coordinator/cluster_check.h"
#include "kubernetes/coordinator/events/unasked_pods.h"
#include "kubernetes/coordinator/events/waiting_events.h"
#include "kubernetes/coordinator/extender/extender.h"
#include "kubernetes/coordinator/metrics/coordinator_metrics.h"
#include "kubernetes/coordinator/namespace_reader.h"
#include "kubernetes/coordinator/resize_writer.h"
#include "kubernetes/coordinator/retry_writer.h"
#include "kubernetes/coordinator/watched_budgets.h"
#include "kubernetes/coordinator/watched_settings.h"
#include "kubernetes/coordinator/watched_version.h"
#include "kubernetes/coordinator/webhook/pod_review.h"

namespace carve::kubernetes::coordinator {

struct CoordinatorSettings {
  std::string name_space = "carve-system";  // The ConfigMap's namespace.
  std::string lease_path;
  std::string host;  // The Lease's holder without "_uuid", if it runs next to this replica.
  uint64_t seed = 0;
  std::string version;
  bool allows_unknown_gpu_requests = false;
  std::function<int64_t()> utc_ns;
  // Returns why the webhooks have no certificate. Empty if they have one.
  std::function<std::string()> certificate_problem;
};

class Coordinator {
 public:
  Coordinator(kubernetes::ApiClient&, CoordinatorSettings);

  // Handle the requests of the three ports.
  http::Response extender(const http::Request&);
  http::Response webhook(const http::Request&);
  http::Response health(const http::Request&);

  bool is_active() const { return lease_.is_held(); }
  // Returns why this replica is not ready. Empty if it is.
  std::string not_ready() const;
  CoordinatorFigures figures() const;

 private:
  // Parts that are started after the settings have been read.
  struct Cluster {
    Cluster(Coordinator&, Strategy);
    // Returns why no write may start now. Empty if one may.
    std::string write_problem(const Coordinator&) const;

    Cache cache;
    Binder binder;
    Extender extender;
    UnaskedPods unasked;
    RetryWriter retries;
    ResizeWriter resizes;
    CacheFeed feed;
  };

  void settings_changed();
  void lease_changed(bool is_held);
  void list_for_this_term();
  void settle();  // Runs every 10 s.
  void check();   // Runs every 60 s.
  void report_unasked();
  void report(const std::vector<Finding>&);
  std::optional<kubernetes::ObjectMeta> object_of(const Finding&) const;
  void count_answer(std::string_view verb, kubernetes::Nanoseconds took, const std::string& error);
  std::string fence() const;
  dialects::PodSettings pod_settings_now();
  http::Response mutate(const http::Request&);
  PodReview in_cluster(PodReview, const NamespaceRules&) const;
  http::Response finish_review(const PodReview&);

  kubernetes::ApiClient& client_;
  const CoordinatorSettings settings_;
  const kubernetes::Nanoseconds started_;
  CoordinatorFigures counts_;  // Only its counters are used.
  EventWriter events_;
  NamespaceReader namespaces_;
  kubernetes::ReaderCheck readers_;
  WatchedVersion version_;
  std::optional<Cluster> cluster_;
  kubernetes::Nanoseconds check_at_ = 0;
  std::map<std::string, kubernetes::Nanoseconds> reported_;  // When each finding was last reported.
  std::optional<Strategy> strategy_;                         // The strategy with which the cache was built.
  WatchedSettings cluster_settings_;
  WatchedBudgets budgets_;
  std::string listed_term_;  // Term of the Lease at the last list of pods; empty if unknown.
  kubernetes::WatchedLease lease_;
  std::unique_ptr<kubernetes::ApiCall> timer_;
};

}  // namespace carve::kubernetes::coordinator
