// Makes the cluster follow the custom resources: it applies the Kubernetes objects of services and applications
// (workload_objects.h), deletes those that a document no longer has, records revisions as ControllerRevisions,
// and writes statuses (workload_status.h). It fills the registry with what its watches deliver.
//
// Queues and jobs (kueue_objects.h, batch_jobs.h) need Kueue. Without it they have the condition KueueMissing; the
// reconciler looks for Kueue's API every 30 s and begins to watch it when it appears.
//
// Objects are applied by server-side apply without force, so a field that another manager has set is never
// changed; the conflict is reported in the status. Only the holder of the Lease acts. Each custom resource has at
// most one request in progress; a failed one is retried after 1 s, 2 s, ... 30 s. Used only in the client's thread,
// except for revisions().
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "controller/kubernetes/cluster_registry.h"
#include "controller/kubernetes/cluster_state.h"
#include "controller/kubernetes/workload_objects.h"
#include "kubernetes/api/api_client.h"
#include "kubernetes/api/watched_objects.h"
#include "os/mutex.h"

namespace carve::controller {

class ClusterReconciler {
 public:
  struct Settings {
    std::function<bool()> may_write;  // Whether a write of at most write_deadline_ns may begin now.
    std::function<int64_t()> utc_ns;
    uint64_t seed = 0;
  };
  static constexpr kubernetes::Nanoseconds write_deadline_ns = 2 * kubernetes::second_ns;
  static constexpr size_t max_requests = 8;  // In progress at the same time.
  static constexpr size_t max_revisions = 10;
  static constexpr kubernetes::Nanoseconds discovery_interval_ns = 30 * kubernetes::second_ns;

  // Starts its watches. The client and the registry must outlive it.
  ClusterReconciler(kubernetes::ApiClient&, ClusterRegistry&, Settings);

  // Looks at all objects again, after the Lease was acquired.
  void take_over();
  // Returns whether every list has been read, except those of Kueue.
  bool is_complete() const;
  // Returns why a watch fails. Empty if none does.
  std::string problem() const;
  // Returns the revisions of the object with this uid, oldest first. May be called in any thread.
  std::vector<ClusterRevision> revisions(const std::string& uid) const EXCLUDES(mutex_);

 private:
  // The reconciler's own data about a custom resource.
  struct Work {
    std::unique_ptr<kubernetes::ApiCall> call;  // Null if no request is in progress.
    std::set<std::string> looked;               // Paths of objects to apply, as of the last look.
    ClusterProblem problem;
    kubernetes::Nanoseconds retry_at = 0;  // No object is applied before.
    kubernetes::Nanoseconds wait_ns = 0;   // Before the next retry.
    kubernetes::Nanoseconds due_at = 0;    // When a finished job is to be removed; 0 if it is not known.
  };
  enum class Kueue { unknown, missing, present };
  using Answered = std::function<void(const kubernetes::ApiAnswer&)>;

  using Watches = std::vector<std::unique_ptr<kubernetes::ObjectWatch>>;

  void watch_kinds();
  void watch_nodes();
  void watch_made(Watches&, const char* kind, const std::string& label_selector);
  void discover();
  void found_kueue(bool is_present);
  bool is_kueue_complete() const;
  void mark_queued();
  void custom_listed(objects::Kind, const kubernetes::ObjectsByUid&);
  void custom_changed(objects::Kind, const kubernetes::ObjectMeta&);
  void custom_removed(objects::Kind, const kubernetes::ObjectMeta&);
  void mark(const std::vector<std::string>& uids);
  void schedule();
  void run();
  // Begins the next request for the custom resource. Returns false if nothing is to be done now.
  bool step(const std::string& uid);
  bool step_objects(const std::string& uid, const CustomObject&);
  bool step_object(const std::string& uid, const api::Json& wanted);
  bool step_unwanted(const std::string& uid, const std::vector<api::Json>& wanted);
  bool step_revision(const std::string& uid, const CustomObject&);
  bool step_queue(const std::string& uid, const CustomObject&);
  bool step_job(const std::string& uid, const CustomObject&);
  bool step_made(const std::string& uid, const Result<OwnedObjects, api::FieldErrors>& wanted);
  bool step_removal(const std::string& uid, const CustomObject&);
  bool create(const std::string& uid, const api::Json& object);
  bool step_status(const std::string& uid, const CustomObject&);
  api::Json status_of(const std::string& uid, const CustomObject&) const;
  Result<OwnedObjects, api::FieldErrors> objects_of_queue(const CustomObject&) const;
  api::Json queue_status_of(const std::string& uid, const CustomObject&) const;
  api::Json job_status_of(const std::string& uid, const CustomObject&) const;
  void set_problem(const std::string& uid, ClusterProblem problem) {
    work_[uid].problem = std::move(problem);
  }
  bool send(const std::string& uid, kubernetes::ApiRequest, Answered);
  bool apply(const std::string& uid, const api::Json& object);
  void take_looked(const std::string& uid, const api::Json& wanted, const kubernetes::ApiAnswer&);
  void take_made(const std::string& uid, const api::Json& wanted, const kubernetes::ApiAnswer&);
  void failed(const std::string& uid, ClusterProblem);
  void publish_revisions(const std::vector<std::string>& uids) EXCLUDES(mutex_);

  kubernetes::ApiClient& client_;
  ClusterRegistry& registry_;
  const Settings settings_;
  ClusterState state_;
  std::map<std::string, Work> work_;  // By uid.
  std::set<std::string> dirty_;       // Uids to look at.
  std::unique_ptr<kubernetes::ApiCall> soon_, retry_;
  mutable os::Mutex mutex_;
  std::map<std::string, std::vector<ClusterRevision>> revisions_ GUARDED_BY(mutex_);  // By uid.
  ClusterCapacity capacity_;
  Kueue kueue_ = Kueue::unknown;
  std::unique_ptr<kubernetes::ApiCall> discovery_, next_discovery_;
  Watches watches_, kueue_watches_;  // Declared last: they call the others.
};

}  // namespace carve::controller
