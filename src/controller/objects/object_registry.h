// All objects of the controller, in memory, and the interface for changing them. There are two registries: one
// keeps the objects in controller.db (journaled_registry.h), the other in a cluster's API server
// (controller/kubernetes/cluster_registry.h). A change is stored before it is visible. Each change gets the
// next version; the newest `max_kept_changes` changes are kept for watches that resume.
//
// The registry is used by several threads. It has its own lock, and calls subscribers only after releasing it.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/objects/object_record.h"
#include "core/failure.h"
#include "os/mutex.h"

namespace carve::controller {

inline constexpr size_t max_kept_changes = 10'000;
inline constexpr size_t max_objects_of_kind = 256;
inline constexpr size_t max_queue_objects = 64;
inline constexpr size_t max_job_objects = 20'000;  // 10,000 waiting jobs, and as many that run or have ended.

// Returns the maximum number of objects of the kind.
constexpr size_t max_objects(objects::Kind kind) {
  if (kind == objects::Kind::queue) return max_queue_objects;
  return kind == objects::Kind::job ? max_job_objects : max_objects_of_kind;
}

// Returns how many objects of the kind are reserved for operators.
constexpr size_t reserved_objects(objects::Kind kind) { return max_objects(kind) / 16; }

enum class ChangeKind : uint8_t { added, modified, deleted };

struct ObjectChange {
  ChangeKind kind = ChangeKind::added;
  uint64_t version = 0;
  std::shared_ptr<const Object> object;  // After the change; for a deleted object, before it.
  std::string caller = {};  // Whose request made the change: "root"; empty for the controller itself.
};

// While this exists, the changes that its thread makes in any registry are made for the caller.
class ChangesBy {
 public:
  explicit ChangesBy(std::string caller);
  ~ChangesBy();
  ChangesBy(const ChangesBy&) = delete;
  ChangesBy& operator=(const ChangesBy&) = delete;

  // Returns the caller of the thread's changes; empty if there is none.
  static const std::string& caller();
};

// One of several changes that are made together.
struct ObjectEdit {
  Object added;                         // Added if there is no object with its key.
  std::function<void(Object&)> change;  // Otherwise called with a copy of the current object.
};

class ObjectRegistry {
 public:
  using Pointer = std::shared_ptr<const Object>;

  virtual ~ObjectRegistry() = default;
  ObjectRegistry(const ObjectRegistry&) = delete;
  ObjectRegistry& operator=(const ObjectRegistry&) = delete;

  // Returns the object, or null if there is none.
  Pointer find(const ObjectKey&) const EXCLUDES(mutex_);
  // Returns an object of the kind with this name, in any namespace, or null.
  Pointer find_named(objects::Kind, const std::string& name) const EXCLUDES(mutex_);
  // Returns the objects of a kind, ordered by namespace and name. An empty namespace means all.
  std::vector<Pointer> list(objects::Kind, std::string_view namespace_ = "") const EXCLUDES(mutex_);
  std::vector<Pointer> workloads() const EXCLUDES(mutex_);  // All objects of the kinds that have replicas.
  uint64_t version() const EXCLUDES(mutex_);
  size_t count(objects::Kind) const EXCLUDES(mutex_);
  // Returns the number of objects of the kind that belong to the account, or to the user, whichever is
  // larger.
  size_t count_of_owner(objects::Kind, const std::string& account, uint32_t uid) const EXCLUDES(mutex_);

  // The following functions return when the change is stored, which may take seconds with a cluster's API
  // server. All of them may fail as unavailable.

  // Adds the object with generation 1. Fails with already_exists, or with resource_exhausted at the limit.
  virtual Outcome<Pointer> add(Object) = 0;
  // Calls `edit` with a copy of the object and stores the copy. If the spec changed, the generation is
  // incremented; if nothing changed, nothing is written. Fails with not_found, or with stale if `expected` is
  // given and differs from the version. `edit` may be called again if another program changed the object.
  virtual Outcome<Pointer> update(const ObjectKey&, const std::function<Outcome<void>(Object&)>& edit,
                                  std::optional<uint64_t> expected = std::nullopt) = 0;
  virtual Outcome<void> remove(const ObjectKey&) = 0;
  // Makes all changes. Returns the objects in the order of the edits. Fails with invalid_argument if two edits
  // name the same object, and with resource_exhausted at the limit.
  virtual Outcome<std::vector<Pointer>> apply(const std::vector<ObjectEdit>&) = 0;
  // Succeeds if apply() would make all changes. Changes nothing.
  virtual Outcome<void> check(const std::vector<ObjectEdit>&) const = 0;

  // Returns the changes after the version. Fails with gone if they are no longer kept.
  Outcome<std::vector<ObjectChange>> changes_behind(uint64_t version) const EXCLUDES(mutex_);
  // Calls `notify` after each change, from the thread that made it.
  void subscribe(std::function<void()> notify) EXCLUDES(mutex_);

 protected:
  // `version` is the last version that was assigned.
  ObjectRegistry(std::vector<Object> objects, uint64_t version);

  // Returns the object, or null if there is none.
  Pointer present(const ObjectKey&) const REQUIRES(mutex_);
  uint64_t newest() const REQUIRES(mutex_) { return version_; }
  // Makes the object visible as the next change, whose version is at least the object's.
  void put(Pointer) REQUIRES(mutex_);
  // Removes the object, which must exist, as the next change.
  void drop(const ObjectKey&) REQUIRES(mutex_);
  Outcome<void> check_limit(objects::Kind, size_t added) const REQUIRES(mutex_);
  // Calls the subscribers. Call it after put() and drop(), without the lock.
  void notify() EXCLUDES(mutex_);

  mutable os::Mutex mutex_;

 private:
  void keep(ChangeKind, Pointer) REQUIRES(mutex_);
  void count_added(const Object&) REQUIRES(mutex_);
  void count_removed(const Object&) REQUIRES(mutex_);

  std::map<ObjectKey, Pointer> objects_ GUARDED_BY(mutex_);
  std::map<objects::Kind, size_t> counts_ GUARDED_BY(mutex_);  // Number of objects, by kind.
  std::map<std::pair<objects::Kind, std::string>, size_t> counts_of_account_ GUARDED_BY(mutex_);
  std::map<std::pair<objects::Kind, uint32_t>, size_t> counts_of_uid_ GUARDED_BY(mutex_);
  std::deque<ObjectChange> changes_ GUARDED_BY(mutex_);
  uint64_t version_ GUARDED_BY(mutex_);
  uint64_t oldest_known_ GUARDED_BY(mutex_);  // All changes after this version are in `changes_`.
  std::vector<std::function<void()>> subscribers_ GUARDED_BY(mutex_);
};

}  // namespace carve::controller
