// A registry of objects over a database in a temporary folder, for tests of reconcilers.
#pragma once

#include <filesystem>
#include <optional>
#include <utility>

#include "controller/objects/testing/journals.h"
#include "controller/store/controller_store.h"

namespace carve::controller {

struct StoreStage {
  std::filesystem::path folder;
  KeepingJournal journal;  // The registry's objects, which survive a restart.
  std::optional<ControllerStore> store;
  std::optional<JournaledRegistry> objects;

  StoreStage() {
    char name[] = "/tmp/carve-stage-XXXXXX";
    folder = mkdtemp(name);
  }
  ~StoreStage() {
    close();
    std::filesystem::remove_all(folder);
  }
  StoreStage(const StoreStage&) = delete;
  StoreStage& operator=(const StoreStage&) = delete;

  std::filesystem::path database() const { return folder / "controller.db"; }
  // Opens the database and the registry as a new controller does.
  void open() {
    close();
    store.emplace(std::move(ControllerStore::open(database(), 1)->store));
    journal.restore(objects);
  }
  void close() {
    objects.reset();
    store.reset();
  }
};

}  // namespace carve::controller
