// Events that other threads add for the loop. Their objects need not exist: a program whose record was lost, or
// a node of a cluster.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "controller/objects/object_changes.h"
#include "os/mutex.h"

namespace carve::controller {

// May be used from any thread.
class EventInbox {
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

}  // namespace carve::controller
