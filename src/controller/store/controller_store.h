// controller.db: what the controller keeps over a restart, in one SQLite file (sqlite/database.h). An
// acknowledged change survives a power failure. Version 1 holds the nodes that an agent has answered for.
#pragma once

#include <string>
#include <vector>

#include "sqlite/database.h"

namespace carve::controller {

// A node as its agent last described it. Times are UTC nanoseconds since 1970.
struct NodeRecord {
  std::string name;
  std::string socket;  // Of its agent.
  int64_t first_seen_ns = 0;
  int64_t last_seen_ns = 0;
  std::string agent_version;
  int64_t agent_started_ns = 0;

  friend bool operator==(const NodeRecord&, const NodeRecord&) = default;
};

class ControllerStore {
 public:
  struct Opened;
  // `now_s` is part of a damaged file's new name. Fails without permission, on a full disk and for a file of
  // another schema version.
  static Outcome<Opened> open(const std::string& path, int64_t now_s);

  // Returns all nodes, by name.
  Outcome<std::vector<NodeRecord>> nodes();
  // Writes the nodes, all or none; a node is identified by its name.
  Outcome<void> write(const std::vector<NodeRecord>& nodes);

  static constexpr int schema_version = 1;

  // Limits the file's size in pages, for tests of a full disk.
  void limit_pages(int64_t pages) { database_.limit_pages(pages); }

 private:
  explicit ControllerStore(sqlite::Database database) : database_(std::move(database)) {}

  sqlite::Database database_;
};

struct ControllerStore::Opened {
  ControllerStore store;
  std::string moved_aside;  // New path of a damaged file; empty: the file was sound, or new.
  std::string damage;       // Description of the damage.
};

}  // namespace carve::controller
