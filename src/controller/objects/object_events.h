// The events of all objects: one for each object and reason, with its count and its first and last time. They
// are taken from the registry's changes, kept in memory and written to the database in batches, so that an
// event costs no wait for the disk: a controller that is killed forgets those of the last second.
//
// The controller's loop alone uses it.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "controller/objects/object_changes.h"
#include "controller/objects/object_registry.h"

namespace carve::controller {

// The events that happened longest ago are forgotten. 512 workloads with the 15 reasons of a usual life fit.
inline constexpr size_t max_kept_events = 10'000;

// An object and a reason identify an event.
struct EventKey {
  ObjectKey object;
  objects::EventReason reason = objects::EventReason::created;

  friend auto operator<=>(const EventKey&, const EventKey&) = default;
};

struct KeptEvent {
  EventKey key;
  std::string message;  // Of the last time.
  uint64_t count = 0;
  int64_t first_ns = 0;  // UTC.
  int64_t last_ns = 0;

  friend bool operator==(const KeptEvent&, const KeptEvent&) = default;
};

// Where events are written. The call is one transaction.
class EventJournal {
 public:
  virtual ~EventJournal() = default;
  virtual Outcome<void> write(std::span<const KeptEvent> changed, std::span<const EventKey> removed) = 0;
};

class ObjectEvents {
 public:
  // `kept`: those of the database.
  ObjectEvents(const ObjectRegistry&, EventJournal&, const std::vector<KeptEvent>& kept);

  // Takes the events of what changed in the registry since the last call.
  void take_changes(int64_t now_ns);
  // Adds an event that no object shows.
  void add(const ObjectKey&, const ChangeEvent&, int64_t now_ns);
  // Writes what was added since the last call that succeeded.
  Outcome<void> write();

  // Returns the events of one object; the one that happened last is the last.
  std::vector<KeptEvent> of(const ObjectKey&) const;
  // Returns the newest `limit` events of the namespace (empty: of all); the one that happened last is the
  // last.
  std::vector<KeptEvent> newest(const std::string& name_space, size_t limit) const;

 private:
  void take(const ObjectChange&, int64_t now_ns);
  void forget_oldest();

  const ObjectRegistry& objects_;
  EventJournal& journal_;
  std::map<ObjectKey, ObjectRegistry::Pointer> known_;  // As of seen_version_.
  uint64_t seen_version_ = 0;
  std::map<EventKey, KeptEvent> events_;
  std::set<EventKey> changed_, removed_;  // Not written yet.
};

}  // namespace carve::controller
