#include "controller/objects/object_registry.h"

#include <algorithm>
#include <ranges>

#include "core/invariant.h"

namespace carve::controller {

using os::MutexLock;

namespace {

// Returns the objects of the kind in the map. They are contiguous because the keys begin with the kind.
template <class Map>
auto range_of(const Map& objects, objects::Kind kind) {
  const auto first = objects.lower_bound(ObjectKey{.kind = kind, .namespace_ = "", .name = ""});
  const auto is_same_kind = [kind](const auto& entry) { return entry.first.kind == kind; };
  return std::views::take_while(std::ranges::subrange(first, objects.end()), is_same_kind);
}

thread_local std::string caller_of_changes;

}  // namespace

ChangesBy::ChangesBy(std::string caller) { caller_of_changes = std::move(caller); }
ChangesBy::~ChangesBy() { caller_of_changes.clear(); }
const std::string& ChangesBy::caller() { return caller_of_changes; }

ObjectRegistry::ObjectRegistry(std::vector<Object> objects, uint64_t version)
    : version_(version), oldest_known_(version) {
  for (Object& object : objects) {
    invariant(object.version <= version_, "an object has a version that was given");
    const ObjectKey key = object.key;
    count_added(object);
    objects_.emplace(key, std::make_shared<const Object>(std::move(object)));
  }
}

ObjectRegistry::Pointer ObjectRegistry::find(const ObjectKey& key) const {
  const MutexLock lock(mutex_);
  return present(key);
}

ObjectRegistry::Pointer ObjectRegistry::find_named(objects::Kind kind, const std::string& name) const {
  const MutexLock lock(mutex_);
  auto at = objects_.lower_bound({.kind = kind, .namespace_ = "", .name = ""});
  while (at != objects_.end() && at->first.kind == kind) {
    const std::string& in = at->first.namespace_;
    if (const auto found = objects_.find({kind, in, name}); found != objects_.end()) return found->second;
    at = objects_.lower_bound({.kind = kind, .namespace_ = in + '\0', .name = ""});  // The next namespace.
  }
  return nullptr;
}

std::vector<ObjectRegistry::Pointer> ObjectRegistry::list(objects::Kind kind,
                                                          std::string_view namespace_) const {
  const MutexLock lock(mutex_);
  std::vector<Pointer> out;
  for (const auto& [key, object] : range_of(objects_, kind))
    if (namespace_.empty() || key.namespace_ == namespace_) out.push_back(object);
  return out;
}

std::vector<ObjectRegistry::Pointer> ObjectRegistry::workloads() const {
  const MutexLock lock(mutex_);
  std::vector<Pointer> out;
  for (const objects::KindText& kind : objects::kinds)
    if (kind.is_workload)
      for (const auto& [key, object] : range_of(objects_, kind.value)) out.push_back(object);
  return out;
}

uint64_t ObjectRegistry::version() const {
  const MutexLock lock(mutex_);
  return version_;
}

void ObjectRegistry::count_added(const Object& object) {
  ++counts_[object.key.kind];
  ++counts_of_account_[{object.key.kind, object.account}];
  ++counts_of_uid_[{object.key.kind, object.owner_uid}];
}

void ObjectRegistry::count_removed(const Object& object) {
  --counts_[object.key.kind];
  const auto remove = [](auto& counts, const auto& key) {
    const auto found = counts.find(key);
    invariant(found != counts.end() && found->second > 0, "each object is counted once");
    if (--found->second == 0) counts.erase(found);
  };
  remove(counts_of_account_, std::pair{object.key.kind, object.account});
  remove(counts_of_uid_, std::pair{object.key.kind, object.owner_uid});
}

size_t ObjectRegistry::count(objects::Kind kind) const {
  const MutexLock lock(mutex_);
  const auto found = counts_.find(kind);
  return found == counts_.end() ? 0 : found->second;
}

size_t ObjectRegistry::count_of_owner(objects::Kind kind, const std::string& account, uint32_t uid) const {
  const MutexLock lock(mutex_);
  const auto of_account = counts_of_account_.find({kind, account});
  const auto of_uid = counts_of_uid_.find({kind, uid});
  return std::max(of_account == counts_of_account_.end() || account.empty() ? 0 : of_account->second,
                  of_uid == counts_of_uid_.end() ? 0 : of_uid->second);
}

ObjectRegistry::Pointer ObjectRegistry::present(const ObjectKey& key) const {
  const auto found = objects_.find(key);
  return found == objects_.end() ? nullptr : found->second;
}

void ObjectRegistry::put(Pointer object) {
  Pointer& present = objects_[object->key];
  const ChangeKind kind = present ? ChangeKind::modified : ChangeKind::added;
  if (present) count_removed(*present);
  count_added(*object);
  present = object;
  keep(kind, std::move(object));
}

void ObjectRegistry::drop(const ObjectKey& key) {
  const auto found = objects_.find(key);
  invariant(found != objects_.end(), "only a known object is removed");
  count_removed(*found->second);
  keep(ChangeKind::deleted, found->second);
  objects_.erase(found);
}

void ObjectRegistry::keep(ChangeKind kind, Pointer object) {
  // Objects of a cluster have versions that other programs' changes have increased as well.
  version_ = std::max(version_ + 1, kind == ChangeKind::deleted ? 0 : object->version);
  changes_.push_back({kind, version_, std::move(object), ChangesBy::caller()});
  if (changes_.size() <= max_kept_changes) return;
  oldest_known_ = changes_.front().version;
  changes_.pop_front();
}

void ObjectRegistry::notify() {
  std::vector<std::function<void()>> subscribers;
  {
    const MutexLock lock(mutex_);
    subscribers = subscribers_;
  }
  for (const auto& call : subscribers) call();
}

Outcome<void> ObjectRegistry::check_limit(objects::Kind kind, size_t added) const {
  const auto found = counts_.find(kind);
  const size_t present = found == counts_.end() ? 0 : found->second;
  if (present + added <= max_objects(kind)) return {};
  return failure(FailureKind::resource_exhausted, "there are {} {}, and the limit is {}; delete one first",
                 present, objects::text_of(kind).plural, max_objects(kind));
}

Outcome<std::vector<ObjectChange>> ObjectRegistry::changes_behind(uint64_t version) const {
  const MutexLock lock(mutex_);
  if (version > version_)
    return failure(FailureKind::invalid_argument, "resourceVersion {} is in the future; the newest is {}",
                   version, version_);
  if (version < oldest_known_)
    return failure(FailureKind::gone,
                   "the changes after resourceVersion {} are no longer kept; list again and watch from there",
                   version);
  const auto first = std::ranges::upper_bound(changes_, version, {}, &ObjectChange::version);
  return std::vector<ObjectChange>(first, changes_.end());
}

void ObjectRegistry::subscribe(std::function<void()> notify) {
  const MutexLock lock(mutex_);
  subscribers_.push_back(std::move(notify));
}

}  // namespace carve::controller
