// controller.db: what the controller keeps over a restart, in one SQLite file (sqlite/database.h). An
// acknowledged change survives a power failure. The records are in stored_records.h. Any thread may use the
// store.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "controller/store/stored_records.h"
#include "os/mutex.h"
#include "sqlite/database.h"

namespace carve::controller {

inline constexpr size_t max_audit_records = 100'000;  // Older lines are deleted.

class ControllerStore {
 public:
  struct Opened;
  // `now_s` is part of a damaged file's new name. Fails without permission, on a full disk and for a file of
  // another schema version.
  static Outcome<Opened> open(const std::string& path, int64_t now_s);

  // Moves the files of a database that is not open aside, because what it has is damaged. Returns the new
  // path.
  static Outcome<std::string> move_aside(const std::string& path, int64_t now_s, const std::string& damage);

  // Returns all records of a type, by their key. Record is a struct of stored_records.h.
  template <class Record>
  Outcome<std::vector<Record>> all();
  // Returns the object with this name, if there is one.
  Outcome<std::vector<ObjectRecord>> objects_named(const std::string& kind, const std::string& name_space,
                                                   const std::string& name);
  // Returns the revisions of an object, the oldest first.
  Outcome<std::vector<RevisionRecord>> revisions(const std::string& uid);

  // Each of the functions below is one transaction: all or nothing.

  // Writes the nodes; a node is identified by its name.
  Outcome<void> write(const std::vector<NodeRecord>& nodes);
  // Writes the objects, and the version of the last one as the last that was given.
  Outcome<void> write(const std::vector<ObjectRecord>&);
  // Deletes the object with its revisions, replicas, workload and job record, and pods.
  Outcome<void> remove(const ObjectRecord&, uint64_t version);
  // Writes the record with its revision; older ones than the newest `kept` are deleted.
  Outcome<void> write(const WorkloadRecord&, const RevisionRecord&, unsigned kept);
  Outcome<void> write(const WorkloadRecord&);
  Outcome<void> write(const ReplicaRecord&);
  Outcome<void> remove(const ReplicaRecord&);
  Outcome<void> write(const JobRecord&);
  Outcome<void> write(const PodRecord&);
  Outcome<void> remove(const PodRecord&);
  Outcome<void> write(const TokenRecord&);
  Outcome<void> remove(const TokenRecord&);
  Outcome<void> append(const AuditRecord&);
  // Writes the events and deletes the others; an event is identified by its object and its reason.
  Outcome<void> write(const std::vector<EventRecord>&, const std::vector<EventRecord>& removed);

  // Writes the answer; deletes those from before `oldest_ns`, and all but the newest `kept`.
  Outcome<void> write(const AnswerRecord&, int64_t oldest_ns, size_t kept);
  // Returns the answer with this key, if there is one.
  Outcome<std::vector<AnswerRecord>> answers(const std::string& caller, const std::string& key);

  // Returns the last resource version that was given.
  Outcome<uint64_t> version();

  static constexpr int schema_version = 6;

  // Limits the file's size in pages, for tests of a full disk.
  void limit_pages(int64_t pages);

 private:
  template <class Record, class... Values>
  Outcome<std::vector<Record>> select(const char* where, const Values&...) EXCLUDES(*mutex_);
  explicit ControllerStore(sqlite::Database database)
      : mutex_(std::make_unique<os::Mutex>()), database_(std::move(database)) {}
  template <class Write>
  Outcome<void> transact(Write write) EXCLUDES(*mutex_);

  std::unique_ptr<os::Mutex> mutex_;
  sqlite::Database database_ GUARDED_BY(*mutex_);
};

struct ControllerStore::Opened {
  ControllerStore store;
  std::string moved_aside;  // New path of a damaged file; empty: the file was sound, or new.
  std::string damage;       // Description of the damage.
};

}  // namespace carve::controller
