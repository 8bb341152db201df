// All objects of the controller, in memory. A change is written through `Journal` before it is visible, so an
// acknowledged change survives a power failure. Each change gets the next resource version; the newest
// `max_kept_changes` changes are kept for watches that resume.
//
// The registry is used by the API's thread and by the thread that carries out actions. It has its own lock,
// and calls subscribers only after releasing it.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
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

// The destination of stored changes. Each call is one transaction.
class Journal {
 public:
  virtual ~Journal() = default;
  virtual Outcome<void> write(std::span<const Object>) = 0;
  virtual Outcome<void> remove(const ObjectKey&, uint64_t version) = 0;
};

// One of several changes that are made together.
struct ObjectEdit {
  Object added;                         // Added if there is no object with its key.
  std::function<void(Object&)> change;  // Otherwise called with a copy of the current object.
};

class ObjectRegistry {
 public:
  using Pointer = std::shared_ptr<const Object>;

  // `version` is the last resource version that was assigned.
  ObjectRegistry(Journal& journal, std::vector<Object> objects, uint64_t version);

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

  // Adds the object with generation 1. Fails with already_exists, or with resource_exhausted at the limit.
  Outcome<Pointer> add(Object) EXCLUDES(mutex_);
  // Calls `edit` with a copy of the object and stores the copy. If the spec changed, the generation is
  // incremented; if nothing changed, nothing is written. Fails with not_found, or with stale if `expected` is
  // given and differs from the version.
  Outcome<Pointer> update(const ObjectKey&, const std::function<Outcome<void>(Object&)>& edit,
                          std::optional<uint64_t> expected = std::nullopt) EXCLUDES(mutex_);
  Outcome<void> remove(const ObjectKey&) EXCLUDES(mutex_);
  // Makes all changes in one transaction or none. Returns the objects in the order of the edits. Fails with
  // invalid_argument if two edits name the same object, and with resource_exhausted at the limit.
  Outcome<std::vector<Pointer>> apply(const std::vector<ObjectEdit>&) EXCLUDES(mutex_);
  // Succeeds if apply() would make all changes. Changes nothing.
  Outcome<void> check(const std::vector<ObjectEdit>&) const EXCLUDES(mutex_);

  // Returns the changes after the version. Fails with gone if they are no longer kept.
  Outcome<std::vector<ObjectChange>> changes_behind(uint64_t version) const EXCLUDES(mutex_);
  // Calls `notify` after each change, from the thread that made it.
  void subscribe(std::function<void()> notify) EXCLUDES(mutex_);

 private:
  // The objects as they will be after several changes.
  struct Prepared {
    std::vector<Pointer> objects;  // In the order of the edits. An unchanged object is the current one.
    std::vector<Object> written;
    std::map<ObjectKey, ChangeKind> kinds;
  };

  Outcome<Prepared> prepared(const std::vector<ObjectEdit>&) const REQUIRES(mutex_);
  void keep(ChangeKind, Pointer) REQUIRES(mutex_);
  Outcome<void> check_limit(objects::Kind, size_t added) const REQUIRES(mutex_);
  void notify() EXCLUDES(mutex_);
  void count_added(const Object&) REQUIRES(mutex_);
  void count_removed(const Object&) REQUIRES(mutex_);

  Journal& journal_;
  mutable os::Mutex mutex_;
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
