// Programs and slices without a record: the database has lost the records
// (docs/decisions/0024-partial-loss.md). A program whose object exists is adopted, which writes its record
// again. If an object needs the name for another program, the orphan is ended immediately. One that no object
// owns is ended after a grace period, in which an operator can restore the right database. Each case is an
// event.
//
// Used by the thread of the service reconciler.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "controller/objects/object_changes.h"
#include "controller/objects/object_registry.h"
#include "controller/services/effects.h"
#include "os/mutex.h"

namespace carve::controller {

// Events of the orphans' objects, which need not exist. Any thread may use it.
class OrphanEvents {
 public:
  struct Entry {
    ObjectKey object;
    ChangeEvent event;
  };
  void add(Entry entry) EXCLUDES(mutex_) {
    const os::MutexLock lock(mutex_);
    entries_.push_back(std::move(entry));
  }
  std::vector<Entry> take() EXCLUDES(mutex_) {
    const os::MutexLock lock(mutex_);
    return std::exchange(entries_, {});
  }

 private:
  os::Mutex mutex_;
  std::vector<Entry> entries_ GUARDED_BY(mutex_);
};

class Orphans {
 public:
  // Callbacks into the loops that have the records.
  struct Loops {
    std::function<bool(const std::string& program)> has_record;
    // Writes the record again. Returns false if no object has a place for the program.
    std::function<bool(const std::string& program, const ProgramOwner&)> adopt;
  };
  Orphans(const ObjectRegistry& objects, Effects& effects, OrphanEvents& events, Loops loops, Ns grace)
      : objects_(objects), effects_(effects), events_(events), loops_(std::move(loops)), grace_(grace) {}

  // Looks for orphans, in each turn while there is one and otherwise every 10 s, and does the next step for
  // each. Returns whether something changed.
  bool turn(Ns now);
  // Returns whether a program or slice of this name is left, so that the name is still taken.
  bool has(const std::string& name) const { return orphans_.contains(name); }

 private:
  struct Orphan {
    ProgramOwner owner;
    Ns found_at = 0;
    Ns terminated_at = 0;  // 0 if no SIGTERM was sent.
    bool is_reported = false;
  };

  void look(Ns now);
  bool is_in_the_way(const ProgramOwner&) const;
  // Does the next step of ending it. Returns true when nothing is left.
  bool end(const std::string& name, Orphan&, Ns now);
  void report(const std::string& name, const ProgramOwner&, objects::EventReason, const std::string& what);

  const ObjectRegistry& objects_;
  Effects& effects_;
  OrphanEvents& events_;
  const Loops loops_;
  const Ns grace_;
  std::map<std::string, Orphan> orphans_;  // Keyed by the program's name.
  Ns looked_at_ = 0;                       // 0 before the first time.
};

}  // namespace carve::controller
