#include "controller/objects/journaled_registry.h"

#include <map>
#include <set>

#include "core/invariant.h"

namespace carve::controller {

using os::MutexLock;

Outcome<ObjectRegistry::Pointer> JournaledRegistry::add(Object object) {
  Pointer added;
  {
    const MutexLock lock(mutex_);
    if (present(object.key))
      return failure(FailureKind::already_exists,
                     "{} already exists; change it with carve apply, or delete it first", text(object.key));
    if (auto room = check_limit(object.key.kind, 1); !room) return tl::unexpected(room.error());
    object.version = newest() + 1;
    object.generation = 1;
    if (auto written = journal_.write({&object, 1}); !written) return tl::unexpected(written.error());
    added = std::make_shared<const Object>(std::move(object));
    put(added);
    invariant(added->version == newest(), "a new object has the newest version");
  }
  notify();
  return added;
}

Outcome<ObjectRegistry::Pointer> JournaledRegistry::update(const ObjectKey& key,
                                                           const std::function<Outcome<void>(Object&)>& edit,
                                                           std::optional<uint64_t> expected) {
  Pointer changed;
  {
    const MutexLock lock(mutex_);
    const Pointer found = present(key);
    if (!found) return failure(FailureKind::not_found, "there is no {}", text(key));
    if (expected && *expected != found->version)
      return failure(FailureKind::stale, "{} has version {}, not {}; read the object again", text(key),
                     found->version, *expected);
    Object next = *found;
    if (auto edited = edit(next); !edited) return tl::unexpected(edited.error());
    if (next == *found) return found;
    invariant(next.key == key, "an object keeps its name");
    next.generation = found->generation + (next.spec != found->spec ? 1 : 0);
    next.version = newest() + 1;
    if (auto written = journal_.write({&next, 1}); !written) return tl::unexpected(written.error());
    changed = std::make_shared<const Object>(std::move(next));
    put(changed);
  }
  notify();
  return changed;
}

Outcome<JournaledRegistry::Prepared> JournaledRegistry::prepared(const std::vector<ObjectEdit>& edits) const {
  Prepared out;
  std::map<objects::Kind, size_t> added;
  std::set<ObjectKey> keys;
  for (const ObjectEdit& edit : edits) {
    const ObjectKey& key = edit.added.key;
    const Pointer found = present(key);
    const bool is_new = found == nullptr;
    if (!keys.insert(key).second)
      return failure(FailureKind::invalid_argument, "two documents describe {}; remove one of them",
                     text(key));
    Object next = is_new ? edit.added : *found;
    next.generation = 1;
    if (is_new) {
      if (auto room = check_limit(key.kind, ++added[key.kind]); !room) return tl::unexpected(room.error());
    } else {
      edit.change(next);
      next.generation = found->generation + (next.spec != found->spec ? 1 : 0);
      if (next == *found) {
        out.objects.push_back(found);
        continue;
      }
    }
    next.version = newest() + out.written.size() + 1;
    out.written.push_back(next);
    out.objects.push_back(std::make_shared<const Object>(std::move(next)));
  }
  invariant(out.objects.size() == edits.size(), "each edit has its object");
  return out;
}

Outcome<void> JournaledRegistry::check(const std::vector<ObjectEdit>& edits) const {
  const MutexLock lock(mutex_);
  if (auto ready = prepared(edits); !ready) return tl::unexpected(ready.error());
  return {};
}

Outcome<std::vector<ObjectRegistry::Pointer>> JournaledRegistry::apply(const std::vector<ObjectEdit>& edits) {
  std::vector<Pointer> out;
  {
    const MutexLock lock(mutex_);
    auto ready = prepared(edits);
    if (!ready) return tl::unexpected(ready.error());
    out = std::move(ready->objects);
    if (ready->written.empty()) return out;
    if (auto kept = journal_.write(ready->written); !kept) return tl::unexpected(kept.error());
    for (const Pointer& object : out)
      if (object->version > newest()) put(object);  // Otherwise it is unchanged.
  }
  notify();
  return out;
}

Outcome<void> JournaledRegistry::remove(const ObjectKey& key) {
  {
    const MutexLock lock(mutex_);
    if (!present(key)) return failure(FailureKind::not_found, "there is no {}", text(key));
    if (auto removed = journal_.remove(key, newest() + 1); !removed) return removed;
    drop(key);
  }
  notify();
  return {};
}

}  // namespace carve::controller
