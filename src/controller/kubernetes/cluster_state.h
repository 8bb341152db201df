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
  // Kinds of objects that Carve makes.
  static constexpr const char *deployment = "Deployment", *address = "Service";

  const CustomObject* find(const std::string& uid) const;
  // Returns the uids of all custom resources.
  std::vector<std::string> uids() const;
  // Returns the object of this kind that the custom resource owns, or null.
  const api::Json* owned(const std::string& uid, const std::string& kind) const;
  // Returns the kinds of objects that it owns.
  std::vector<std::string> owned_kinds(const std::string& uid) const;
  // Returns its pods in the order of their names.
  std::vector<const api::Json*> pods(const ObjectKey&) const;
  // Returns its revisions, oldest first.
  std::vector<ClusterRevision> revisions(const std::string& uid) const;

  void remove_custom(const std::string& uid);
  // Each of the following functions returns the uids of the custom resources that are concerned.
  std::vector<std::string> put_custom(CustomObject);
  // `kind` is that of all objects in `all`, or of the object.
  std::vector<std::string> replace(const std::string& kind, const kubernetes::ObjectsByUid& all);
  std::vector<std::string> put(const std::string& kind, const kubernetes::ObjectMeta&);
  std::vector<std::string> remove(const std::string& kind, const kubernetes::ObjectMeta&);

 private:
  struct Made {
    std::string kind, owner, name_space, name;
    std::string workload;  // Name of a pod's workload; otherwise empty.
    uint64_t version = 0;
    api::Json json;
  };
  using Place = std::pair<std::string, std::string>;  // Namespace and name.

  std::vector<std::string> concerned(const Made&) const;
  void index(const std::string& uid, const Made&);
  void remove_made(const std::string& uid);
  std::vector<const Made*> made_of(const std::string& owner, std::string_view kind) const;

  std::map<std::string, CustomObject> customs_;       // By uid.
  std::map<std::string, Made> made_;                  // By uid.
  std::map<Place, std::set<std::string>> workloads_;  // Uids of services and applications.
  std::map<std::string, std::set<std::string>>
      of_owner_;  // Uids of made objects except pods, by their owner.
  std::map<Place, std::set<std::string>> pods_of_workload_;  // Uids of pods.
};

}  // namespace carve::controller
