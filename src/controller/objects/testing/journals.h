// Journals for tests: one that stores nothing, and one from which a controller can restart.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "controller/objects/journaled_registry.h"

namespace carve::controller {

struct NoJournal final : Journal {
  Outcome<void> write(std::span<const Object>) override { return {}; }
  Outcome<void> remove(const ObjectKey&, uint64_t) override { return {}; }
};

struct KeepingJournal final : Journal {
  Outcome<void> write(std::span<const Object> objects) override {
    for (const Object& object : objects) kept[object.key] = object;
    return {};
  }
  Outcome<void> remove(const ObjectKey& key, uint64_t) override {
    kept.erase(key);
    return {};
  }
  // Creates the registry of the next controller.
  void restore(std::optional<JournaledRegistry>& registry) {
    std::vector<Object> objects;
    uint64_t version = 0;
    for (const auto& [key, object] : kept) {
      objects.push_back(object);
      version = std::max(version, object.version);
    }
    registry.emplace(*this, objects, version);
  }

  std::map<ObjectKey, Object> kept;
};

}  // namespace carve::controller
