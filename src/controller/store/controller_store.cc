#include "controller/store/controller_store.h"

#include "sqlite/rows.h"

namespace carve::controller {
namespace {

namespace rows = sqlite::rows;
using sqlite::Statement;

// The table has the columns that the struct has fields.
const std::string& script() {
  static const std::string text =
      fmt::format("CREATE TABLE node ({}, PRIMARY KEY (name)) STRICT;", rows::declarations<NodeRecord>());
  return text;
}

int insert(sqlite3* db, const NodeRecord& node) {
  const auto columns = rows::columns<NodeRecord>();
  Statement s(db, fmt::format("INSERT OR REPLACE INTO node ({}) VALUES ({})", fmt::join(columns, ", "),
                              fmt::join(std::vector<std::string>(columns.size(), "?"), ", "))
                      .c_str());
  rows::bind(s, node);
  return s.finish();
}

}  // namespace

Outcome<ControllerStore::Opened> ControllerStore::open(const std::string& path, int64_t now_s) {
  auto opened = sqlite::Database::open(
      path, {"controller database", "--state", schema_version, script().c_str()}, now_s);
  if (!opened) return tl::unexpected(opened.error());
  return Opened{.store = ControllerStore(std::move(opened->database)),
                .moved_aside = std::move(opened->moved_aside),
                .damage = std::move(opened->damage)};
}

Outcome<std::vector<NodeRecord>> ControllerStore::nodes() {
  std::vector<NodeRecord> out;
  Statement s = database_.statement(
      fmt::format("SELECT {} FROM node ORDER BY name", fmt::join(rows::columns<NodeRecord>(), ", ")).c_str());
  while (s.row()) {
    int column = 0;
    std::string wrong;
    if (!rows::read(s, column, out.emplace_back(), wrong))
      return database_.unknown_value(fmt::format("an invalid node '{}'", wrong));
  }
  if (!s.done()) return database_.trouble("reading");
  return out;
}

Outcome<void> ControllerStore::write(const std::vector<NodeRecord>& nodes) {
  return database_.transact([&](sqlite3* db) {
    for (const NodeRecord& node : nodes)
      if (const int code = insert(db, node)) return code;
    return SQLITE_OK;
  });
}

}  // namespace carve::controller
