// The events of all objects: one for each object (by its uid) and reason, with a count and the first and last
// time. They are derived from the registry's changes, kept in memory and written to the database in batches,
// so that an event never waits for the disk. If the controller is killed, the events of the last second are
// lost.
//
// Used only on the controller's loop.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "controller/objects/object_changes.h"
#include "controller/objects/object_registry.h"

namespace carve::controller {

// Beyond this limit the events that happened longest ago are dropped. It is enough for 512 workloads with the
// usual 15 reasons.
inline constexpr size_t max_kept_events = 10'000;

// An object and a reason identify an event. Successive objects with the same name have different uids.
struct EventKey {
  ObjectKey object;
  std::string uid;  // Empty if the database had lost the object.
  objects::EventReason reason = objects::EventReason::created;

  friend auto operator<=>(const EventKey&, const EventKey&) = default;
};

struct KeptEvent {
  EventKey key;
  std::string message;  // Message of the last occurrence.
  uint64_t count = 0;
  int64_t first_ns = 0;  // UTC.
  int64_t last_ns = 0;
  std::string caller = {};  // Whose request caused the last occurrence; empty for the controller itself.

  friend bool operator==(const KeptEvent&, const KeptEvent&) = default;
};

// The destination of stored events. Each call is one transaction.
class EventJournal {
 public:
  virtual ~EventJournal() = default;
  virtual Outcome<void> write(std::span<const KeptEvent> changed, std::span<const EventKey> removed) = 0;
};

class ObjectEvents {
 public:
  // `kept` contains the events in the database. Events without a uid are assigned to the current object of
  // their name unless they are older than it.
  ObjectEvents(const ObjectRegistry&, EventJournal&, const std::vector<KeptEvent>& kept);

  // Derives the events of the registry's changes since the last call.
  void take_changes(int64_t now_ns);
  // Adds an event for the current object with this key that does not follow from a change of the object.
  void add(const ObjectKey&, const ChangeEvent&, int64_t now_ns);
  // Stores the events added since the last successful call.
  Outcome<void> write();

  // Returns the events of the current object with this key, or of the last one that had it, ordered by their
  // last time.
  std::vector<KeptEvent> of(const ObjectKey&) const;
  // Returns the events of all objects that ever had the key, in the same order.
  std::vector<KeptEvent> of_all_lives(const ObjectKey&) const;
  // Returns the newest `limit` events of the namespace, or of all namespaces if it is empty, in the same
  // order.
  std::vector<KeptEvent> newest(const std::string& name_space, size_t limit) const;

 private:
  void take(const ObjectChange&, int64_t now_ns);
  void add(const EventKey&, const std::string& message, const std::string& caller, int64_t now_ns);
  void forget_oldest();

  const ObjectRegistry& objects_;
  EventJournal& journal_;
  std::map<ObjectKey, ObjectRegistry::Pointer> known_;  // As of seen_version_.
  uint64_t seen_version_ = 0;
  std::map<EventKey, KeptEvent> events_;
  std::set<EventKey> changed_, removed_;  // Not written yet.
};

}  // namespace carve::controller
