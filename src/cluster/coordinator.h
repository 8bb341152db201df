// The coordinator without its sockets: the books and what keeps them, the extender and the webhooks, and what
// both show of themselves. Over an ApiClient, so tests run it under virtual time.
//
// All replicas keep books and answer webhooks. Bindings, events and the ConfigMap are written by the replica
// beside the scheduler that holds the Lease (docs/decisions/0018-the-schedulers-lease.md).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "cluster/books_feed.h"
#include "cluster/cluster_check.h"
#include "cluster/events/waiting_events.h"
#include "cluster/extender/extender.h"
#include "cluster/metrics/coordinator_metrics.h"
#include "cluster/namespace_reader.h"
#include "cluster/retry_writer.h"
#include "cluster/watched_settings.h"
#include "cluster/watched_version.h"
#include "cluster/webhook/pod_review.h"
#include "cluster/wish_writer.h"
#include "http/message.h"
#include "kube/access/reader_check.h"
#include "kube/watched_lease.h"

namespace carve::cluster {

struct CoordinatorSettings {
  std::string name_space = "carve-system";  // Of the ConfigMap.
  std::string lease_path;
  std::string host;  // What the Lease's holder has before "_uuid", if it is beside this replica.
  uint64_t seed = 0;
  std::string version;
  std::function<int64_t()> utc_ns;
  std::function<std::string()> certificate_problem;  // Empty: the webhooks have a certificate.
};

class Coordinator {
 public:
  Coordinator(kube::ApiClient&, CoordinatorSettings);

  // The answers of the three ports.
  http::Response extender(const http::Request&);
  http::Response webhook(const http::Request&);
  http::Response health(const http::Request&);

  bool is_active() const { return lease_.is_held(); }
  // Returns why this replica is not ready; empty: it is.
  std::string not_ready() const;
  CoordinatorFigures figures() const;

 private:
  // What begins when the settings are known.
  struct Cluster {
    Cluster(Coordinator&, Strategy);
    // Returns why no write may begin now; empty: it may.
    std::string write_problem(const Coordinator&) const;

    Books books;
    Binder binder;
    Extender extender;
    RetryWriter retries;
    WishWriter wishes;
    BooksFeed feed;
  };

  void settings_changed();
  void lease_changed(bool is_held);
  void list_for_this_term();
  void settle();  // Every 10 s.
  void check();   // Every 60 s.
  void report(const std::vector<Finding>&);
  std::optional<kube::ObjectMeta> object_of(const Finding&) const;
  void count_answer(std::string_view verb, kube::Nanoseconds took, const std::string& error);
  std::string fence() const;
  fronts::PodSettings pod_settings_now();
  http::Response mutate(const http::Request&);
  http::Response finish_review(const PodReview&);

  kube::ApiClient& client_;
  const CoordinatorSettings settings_;
  const kube::Nanoseconds started_;
  CoordinatorFigures counts_;  // The counters among them.
  EventWriter events_;
  NamespaceReader namespaces_;
  kube::ReaderCheck readers_;
  WatchedVersion version_;
  std::optional<Cluster> cluster_;
  kube::Nanoseconds check_at_ = 0;
  std::set<std::string> reported_;    // Sentences that have an event.
  std::optional<Strategy> strategy_;  // With which the books were made.
  WatchedSettings cluster_settings_;
  std::string listed_term_;  // Of the Lease, in which the pods were listed; empty: it is not known.
  kube::WatchedLease lease_;
  std::unique_ptr<kube::ApiCall> timer_;
};

}  // namespace carve::cluster
