// The registry of a controller that keeps its objects itself: each change is written through `Journal` before it
// is visible, so an acknowledged change survives a power failure. The lock is held meanwhile.
#pragma once

#include <span>
#include <vector>

#include "controller/objects/object_registry.h"

namespace carve::controller {

// The destination of stored changes. Each call is one transaction.
class Journal {
 public:
  virtual ~Journal() = default;
  virtual Outcome<void> write(std::span<const Object>) = 0;
  virtual Outcome<void> remove(const ObjectKey&, uint64_t version) = 0;
};

class JournaledRegistry final : public ObjectRegistry {
 public:
  // `version` is the last resource version that was assigned.
  JournaledRegistry(Journal& journal, std::vector<Object> objects, uint64_t version)
      : ObjectRegistry(std::move(objects), version), journal_(journal) {}

  Outcome<Pointer> add(Object) override EXCLUDES(mutex_);
  Outcome<Pointer> update(const ObjectKey&, const std::function<Outcome<void>(Object&)>& edit,
                          std::optional<uint64_t> expected = std::nullopt) override EXCLUDES(mutex_);
  Outcome<void> remove(const ObjectKey&) override EXCLUDES(mutex_);
  // Makes all changes in one transaction or none.
  Outcome<std::vector<Pointer>> apply(const std::vector<ObjectEdit>&) override EXCLUDES(mutex_);
  Outcome<void> check(const std::vector<ObjectEdit>&) const override EXCLUDES(mutex_);

 private:
  // The objects as they will be after several changes.
  struct Prepared {
    std::vector<Pointer> objects;  // In the order of the edits. An unchanged object is the current one.
    std::vector<Object> written;
  };
  Outcome<Prepared> prepared(const std::vector<ObjectEdit>&) const REQUIRES(mutex_);

  Journal& journal_;
};

}  // namespace carve::controller
