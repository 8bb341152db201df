// The reconciler's copy of the cluster: custom resources, and the objects that Carve made for them. It follows
// watches; it has no lock and sends nothing.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/kubernetes/custom_object.h"
#include "controller/kubernetes/kueue_objects.h"
#include "controller/kubernetes/workload_status.h"
#include "kubernetes/api/answers.h"
#include "wire/api/json_value.h"

namespace carve::controller {

// A revision of a workload, stored as a ControllerRevision.
struct ClusterRevision {
  std::string uid, name;  // Those of the ControllerRevision.
  uint32_t number = 0;
  int64_t created_ns = 0;   // UTC.
  std::string object_spec;  // Spec of the object, as JSON.
  std::string form;         // Part of the service's spec that a revision fixes, as JSON.
};

class ClusterState {
 public:
  // Kinds of objects that Carve makes. The others are in made_kinds.h.
  static constexpr const char *deployment = "Deployment", *address = "Service";
  // So many of a queue's waiting jobs have a position: the status of each of them is written when one is admitted.
  static constexpr size_t max_positions = 100;

  const CustomObject* find(const std::string& uid) const;
  // Returns the uids of all custom resources.
  std::vector<std::string> uids() const;
  // Returns the object of this kind that the custom resource owns, or null.
  const api::Json* owned(const std::string& uid, const std::string& kind) const;
  // Returns the object that it owns with the kind, namespace and name of `wanted`, or null.
  const api::Json* owned_like(const std::string& uid, const api::Json& wanted) const;
  // Returns its objects except revisions, each with its kind.
  std::vector<std::pair<std::string, const api::Json*>> owned_objects(const std::string& uid) const;
  // Returns its pods in the order of their names.
  std::vector<const api::Json*> pods(const ObjectKey&) const;
  // Return the pods and the Workload of the Job (batch/v1) that the custom resource owns. There may be none.
  std::vector<const api::Json*> pods_of_job(const std::string& uid) const;
  const api::Json* workload(const std::string& uid) const;
  // Returns the position of the job's Workload in its queue, from 1. 0 if it does not wait, or if max_positions others
  // are before it.
  uint32_t position(const std::string& uid) const;
  // Returns the queue, or null.
  const CustomObject* queue(const std::string& name) const;
  // Returns the valid queues of a pool, in the order of their names.
  std::vector<const Object*> queues_of(const std::string& pool) const;
  // Returns the uids of the jobs of a queue.
  std::vector<std::string> jobs_of(const std::string& queue) const;
  // Returns what the jobs of a queue require, including the namespaces in which it already has a LocalQueue.
  QueueUse use_of(const CustomObject& queue) const;
  // Returns its revisions, oldest first.
  std::vector<ClusterRevision> revisions(const std::string& uid) const;

  // Each of the following functions returns the uids of the custom resources that are concerned.
  std::vector<std::string> remove_custom(const std::string& uid);
  std::vector<std::string> put_custom(CustomObject);
  // `kind` is that of all objects in `all`, or of the object.
  std::vector<std::string> replace(const std::string& kind, const kubernetes::ObjectsByUid& all);
  std::vector<std::string> put(const std::string& kind, const kubernetes::ObjectMeta&);
  std::vector<std::string> remove(const std::string& kind, const kubernetes::ObjectMeta&);

 private:
  struct Made {
    std::string kind, name_space, name;
    std::vector<std::string> owners;  // Uids.
    std::string workload;             // Name of a pod's workload; otherwise empty.
    uint64_t version = 0;
    api::Json json;
  };
  using Place = std::pair<std::string, std::string>;  // Namespace and name.
  // A waiting Workload, in the order in which Kueue considers them.
  struct Turn {
    int64_t behind = 0;  // The negative priority.
    std::string created, uid;

    friend auto operator<=>(const Turn&, const Turn&) = default;
  };

  std::vector<std::string> concerned(const Made&) const;
  // Returns the custom resources whose position may change with this Workload.
  std::vector<std::string> neighbors(const Made&) const;
  std::vector<std::string> related(const CustomObject&) const;
  static bool has_turn(const Made&);
  static Turn turn_of(const std::string& uid, const api::Json& workload);
  void index(const std::string& uid, const Made&);
  void remove_made(const std::string& uid);
  std::vector<const Made*> made_of(const std::string& owner, std::string_view kind) const;

  std::map<std::string, CustomObject> customs_;                 // By uid.
  std::map<std::string, Made> made_;                            // By uid.
  std::map<Place, std::set<std::string>> workloads_;            // Uids of services and applications.
  std::map<std::string, std::string> queues_;                   // Uids, by name.
  std::map<std::string, std::set<std::string>> jobs_of_queue_;  // Uids of jobs.
  std::map<std::string, std::set<Turn>> turns_;                 // Waiting Workloads, by queue.
  std::map<std::string, std::set<std::string>>
      of_owner_;  // Uids of made objects except pods of workloads, by their owners.
  std::map<Place, std::set<std::string>> pods_of_workload_;  // Uids of pods.
};

}  // namespace carve::controller
