// controller.db: the controller's persistent state, in one SQLite file (sqlite/database.h). An acknowledged
// change survives a power failure. It is the journal of the registry, the tokens, the events and the kept
// answers; the reconcilers' records are in stored_records.h. May be used from any thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "controller/objects/journaled_registry.h"
#include "controller/objects/object_events.h"
#include "controller/objects/session_book.h"
#include "controller/objects/token_book.h"
#include "controller/store/kept_answer.h"
#include "controller/store/stored_records.h"
#include "controller/store/workload_journal.h"
#include "os/mutex.h"
#include "sqlite/database.h"

namespace carve::controller {

inline constexpr size_t max_audit_records = 100'000;

class ControllerStore final : public Journal,
                              public TokenJournal,
                              public SessionJournal,
                              public AnswerJournal,
                              public EventJournal,
                              public WorkloadJournal {
 public:
  struct Opened;
  // `now_s` becomes part of the new name of a damaged file. Fails without permission, on a full disk, and for
  // a file with another schema version.
  static Outcome<Opened> open(const std::string& path, int64_t now_s);

  // Moves the files of a closed database aside because its contents are damaged. Returns the new path.
  static Outcome<std::string> move_aside(const std::string& path, int64_t now_s, const std::string& damage);

  // Returns all records of a type, ordered by their key. Record is Object, Token, Session, KeptEvent or a struct of
  // stored_records.h. Events with an unknown reason or kind are left out.
  template <class Record>
  Outcome<std::vector<Record>> all();
  // Returns the newest lines of the audit log, oldest first.
  Outcome<std::vector<AuditRecord>> newest_audit(size_t most);
  // Returns the revisions of an object, oldest first.
  Outcome<std::vector<RevisionRecord>> revisions(const std::string& uid);

  // Each of the following functions is one transaction.

  // Writes the nodes, which are identified by their names.
  Outcome<void> write(const std::vector<NodeRecord>& nodes);
  // Writes the objects and records the version of the last one as the newest resource version.
  Outcome<void> write(std::span<const Object>) override;
  // Deletes the object with its revisions, replicas, workload and job record, and pods.
  Outcome<void> remove(const ObjectKey&, uint64_t version) override;
  Outcome<void> write(const WorkloadRecord&, const RevisionRecord&, unsigned kept) override;
  Outcome<void> write(const WorkloadRecord&) override;
  Outcome<void> write(const ReplicaRecord&) override;
  Outcome<void> remove(const ReplicaRecord&) override;
  Outcome<void> write(const JobRecord&);
  Outcome<void> write(const PodRecord&);
  Outcome<void> remove(const PodRecord&);
  Outcome<void> write(const Token&) override;
  Outcome<void> remove(const Token&) override;
  Outcome<void> write(const Session&) override;
  Outcome<void> remove(const Session&) override;
  // If the table is full, first deletes the oldest line of the caller with the most lines. Root's lines are
  // kept as long as they are at most a quarter.
  Outcome<void> append(const AuditRecord&);
  // Writes the first events and deletes the second ones. An event is identified by its object and its reason.
  Outcome<void> write(std::span<const KeptEvent>, std::span<const EventKey> removed) override;

  // Writes the answer and deletes answers older than `oldest_ns`. If more than `kept` are left, deletes the
  // oldest answer of the caller with the most.
  Outcome<void> write(const KeptAnswer&, int64_t oldest_ns, size_t kept);
  Outcome<void> write(const KeptAnswer& answer) override {
    return write(answer, answer.at_ns - answer_lifetime_ns, max_kept_answers);
  }
  // Returns the answer with this key; no value if there is none.
  Outcome<std::optional<KeptAnswer>> find(const std::string& caller, const std::string& key) override;

  // Returns the last resource version that was assigned.
  Outcome<uint64_t> version();

  static constexpr int schema_version = 9;

  // Limits the file's size in pages, for tests of a full disk.
  void limit_pages(int64_t pages);
  void limit_audit(size_t records);  // For tests; max_audit_records otherwise.

 private:
  // The audit records of one caller, inside and outside of slices.
  struct AuditShare {
    size_t records = 0;
    int64_t first_id = 0;  // No record of the caller has a lower id.
  };
  Outcome<void> count_audit() REQUIRES(*mutex_);
  // Returns the caller whose oldest record must be deleted when this caller adds one; empty if there is room.
  std::string audit_yielder(const std::string& caller) REQUIRES(*mutex_);
  template <class Record, class... Values>
  Outcome<std::vector<Record>> select(const char* where, const Values&...) EXCLUDES(*mutex_);
  explicit ControllerStore(sqlite::Database database)
      : mutex_(std::make_unique<os::Mutex>()), database_(std::move(database)) {}
  template <class Write>
  Outcome<void> transact(Write write) EXCLUDES(*mutex_);

  std::unique_ptr<os::Mutex> mutex_;
  sqlite::Database database_ GUARDED_BY(*mutex_);
  std::map<std::string, AuditShare> audit_shares_ GUARDED_BY(*mutex_);  // Keyed by caller.
  std::optional<size_t> audit_records_
      GUARDED_BY(*mutex_);  // Number of all records, counted by the first append().
  size_t max_audit_ GUARDED_BY(*mutex_) = max_audit_records;
};

struct ControllerStore::Opened {
  ControllerStore store;
  std::string moved_aside;  // New path of a damaged file; empty if the file was sound or new.
  std::string damage;       // Description of the damage.
};

}  // namespace carve::controller
