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

ObjectRegistry::ObjectRegistry(Journal& journal, std::vector<Object> objects, uint64_t version)
    : journal_(journal), version_(version), oldest_known_(version) {
  for (Object& object : objects) {
    invariant(object.version <= version_, "an object has a version that was given");
    const ObjectKey key = object.key;
    count_added(object);
    objects_.emplace(key, std::make_shared<const Object>(std::move(object)));
  }
}

ObjectRegistry::Pointer ObjectRegistry::find(const ObjectKey& key) const {
  const MutexLock lock(mutex_);
  const auto found = objects_.find(key);
  return found == objects_.end() ? nullptr : found->second;
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

void ObjectRegistry::keep(ChangeKind kind, Pointer object) {
  ++version_;
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

Outcome<ObjectRegistry::Pointer> ObjectRegistry::add(Object object) {
  Pointer added;
  {
    const MutexLock lock(mutex_);
    if (objects_.contains(object.key))
      return failure(FailureKind::already_exists,
                     "{} already exists; change it with carve apply, or delete it first", text(object.key));
    if (auto room = check_limit(object.key.kind, 1); !room) return tl::unexpected(room.error());
    object.version = version_ + 1;
    object.generation = 1;
    if (auto written = journal_.write({&object, 1}); !written) return tl::unexpected(written.error());
    added = std::make_shared<const Object>(std::move(object));
    objects_[added->key] = added;
    count_added(*added);
    keep(ChangeKind::added, added);
    invariant(added->version == version_);
  }
  notify();
  return added;
}

Outcome<ObjectRegistry::Pointer> ObjectRegistry::update(const ObjectKey& key,
                                                        const std::function<Outcome<void>(Object&)>& edit,
                                                        std::optional<uint64_t> expected) {
  Pointer changed;
  {
    const MutexLock lock(mutex_);
    const auto found = objects_.find(key);
    if (found == objects_.end()) return failure(FailureKind::not_found, "there is no {}", text(key));
    if (expected && *expected != found->second->version)
      return failure(FailureKind::stale, "{} has version {}, not {}; read the object again", text(key),
                     found->second->version, *expected);
    Object next = *found->second;
    if (auto edited = edit(next); !edited) return tl::unexpected(edited.error());
    if (next == *found->second) return found->second;
    invariant(next.key == key, "an object keeps its name");
    next.generation = found->second->generation + (next.spec != found->second->spec ? 1 : 0);
    next.version = version_ + 1;
    if (auto written = journal_.write({&next, 1}); !written) return tl::unexpected(written.error());
    changed = std::make_shared<const Object>(std::move(next));
    count_removed(*found->second);
    count_added(*changed);
    found->second = changed;
    keep(ChangeKind::modified, changed);
  }
  notify();
  return changed;
}

Outcome<ObjectRegistry::Prepared> ObjectRegistry::prepared(const std::vector<ObjectEdit>& edits) const {
  Prepared out;
  std::map<objects::Kind, size_t> added;
  for (const ObjectEdit& edit : edits) {
    const ObjectKey& key = edit.added.key;
    const auto found = objects_.find(key);
    const bool is_new = found == objects_.end();
    if (!out.kinds.emplace(key, is_new ? ChangeKind::added : ChangeKind::modified).second)
      return failure(FailureKind::invalid_argument, "two documents describe {}; remove one of them",
                     text(key));
    Object next = is_new ? edit.added : *found->second;
    next.generation = 1;
    if (is_new) {
      if (auto room = check_limit(key.kind, ++added[key.kind]); !room) return tl::unexpected(room.error());
    } else {
      edit.change(next);
      const Object& present = *found->second;
      next.generation = present.generation + (next.spec != present.spec ? 1 : 0);
      if (next == present) {
        out.objects.push_back(found->second);
        continue;
      }
    }
    next.version = version_ + out.written.size() + 1;
    out.written.push_back(next);
    out.objects.push_back(std::make_shared<const Object>(std::move(next)));
  }
  invariant(out.objects.size() == edits.size(), "each edit has its object");
  return out;
}

Outcome<void> ObjectRegistry::check(const std::vector<ObjectEdit>& edits) const {
  const MutexLock lock(mutex_);
  if (auto ready = prepared(edits); !ready) return tl::unexpected(ready.error());
  return {};
}

Outcome<std::vector<ObjectRegistry::Pointer>> ObjectRegistry::apply(const std::vector<ObjectEdit>& edits) {
  std::vector<Pointer> out;
  {
    const MutexLock lock(mutex_);
    auto ready = prepared(edits);
    if (!ready) return tl::unexpected(ready.error());
    out = std::move(ready->objects);
    if (ready->written.empty()) return out;
    if (auto kept = journal_.write(ready->written); !kept) return tl::unexpected(kept.error());
    for (const Pointer& object : out) {
      if (object->version <= version_) continue;  // Unchanged.
      Pointer& present = objects_[object->key];
      if (present) count_removed(*present);
      count_added(*object);
      present = object;
      const ChangeKind kind = ready->kinds.at(object->key);
      keep(kind, object);
    }
  }
  notify();
  return out;
}

Outcome<void> ObjectRegistry::remove(const ObjectKey& key) {
  {
    const MutexLock lock(mutex_);
    const auto found = objects_.find(key);
    if (found == objects_.end()) return failure(FailureKind::not_found, "there is no {}", text(key));
    if (auto removed = journal_.remove(key, version_ + 1); !removed) return removed;
    keep(ChangeKind::deleted, found->second);
    count_removed(*found->second);
    objects_.erase(found);
  }
  notify();
  return {};
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
