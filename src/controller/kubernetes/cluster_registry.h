// The registry of a controller whose objects are custom resources. Its copy follows the API server: observe(),
// forget() and replace() take what watches deliver. Changes are sent to the API server with the version of the
// object that they were derived from, so that no change of another program is lost; they are visible when the
// server has accepted them.
//
// Several objects are not changed in one transaction. If one of them is rejected, the error names the ones that
// were changed before. Statuses are written by the reconciler, not through this interface.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "controller/kubernetes/api_caller.h"
#include "controller/kubernetes/custom_object.h"
#include "controller/objects/object_registry.h"

namespace carve::controller {

class ClusterRegistry final : public ObjectRegistry {
 public:
  explicit ClusterRegistry(ApiCaller& api) : ObjectRegistry({}, 0), api_(api) {}

  // These functions wait for the API server, without the lock.
  Outcome<Pointer> add(Object) override EXCLUDES(mutex_);
  Outcome<Pointer> update(const ObjectKey&, const std::function<Outcome<void>(Object&)>& edit,
                          std::optional<uint64_t> expected = std::nullopt) override EXCLUDES(mutex_);
  Outcome<void> remove(const ObjectKey&) override EXCLUDES(mutex_);
  Outcome<std::vector<Pointer>> apply(const std::vector<ObjectEdit>&) override EXCLUDES(mutex_);
  Outcome<void> check(const std::vector<ObjectEdit>&) const override EXCLUDES(mutex_);

  // Takes an object of the API server. An older version than the known one is ignored. An object with errors is
  // not visible here.
  void observe(const CustomObject&) EXCLUDES(mutex_);
  // Takes the deletion of an object.
  void forget(const ObjectKey&, const std::string& uid) EXCLUDES(mutex_);
  // Takes all objects of a kind; the others of the kind are gone.
  void replace(objects::Kind, const std::vector<CustomObject>&) EXCLUDES(mutex_);

 private:
  // Sends the change of an object. A conflict fails as stale, after the newest version was observed.
  Outcome<Pointer> change(const Object& before, const Object& after) EXCLUDES(mutex_);
  Outcome<Pointer> end(const Object&) EXCLUDES(mutex_);
  // Takes an object from a response, and returns it as it is visible here.
  Outcome<Pointer> taken(objects::Kind, const std::string& body) EXCLUDES(mutex_);
  void refresh(const ObjectKey&) EXCLUDES(mutex_);
  bool take(const CustomObject&) REQUIRES(mutex_);

  ApiCaller& api_;
  std::set<std::string> removed_
      GUARDED_BY(mutex_);  // Uids of deleted objects whose deletion is not observed yet.
};

}  // namespace carve::controller
