#include "controller/billing/usage_store.h"

#include <fmt/ranges.h>

#include <map>

#include "sqlite/rows.h"

namespace carve::controller {
namespace {

namespace rows = sqlite::rows;
using sqlite::Statement;

// The numbers of devices over time; a row for each change of a node.
constexpr const char* inventory_table =
    "CREATE TABLE inventory (\"node\" TEXT, \"from_ns\" INTEGER, \"devices\" INTEGER, PRIMARY KEY (node, "
    "from_ns)) "
    "STRICT";

// Finds the open records of one node among those of thousands.
constexpr const char* open_index = "CREATE INDEX usage_open ON usage(node, ledger, id) WHERE end_ns = 0";

// The first index finds records that begin in a window, and the second finds those that begin before it and
// reach into it. The third finds the records of one job, of which there are few compared with those of
// services.
const std::string& script() {
  static const std::string text = fmt::format(
      "CREATE TABLE usage ({}, UNIQUE (node, ledger, id)) STRICT;"
      "CREATE INDEX usage_begin ON usage(from_ns);"
      "CREATE INDEX usage_end ON usage(end_ns, from_ns);"
      "CREATE INDEX usage_workload ON usage(name, name_space) WHERE kind IN ('job', 'raycluster');"
      "CREATE TABLE seen (node TEXT, ledger INTEGER, {}, PRIMARY KEY (node, ledger)) STRICT;"
      "{}; {};",
      rows::declarations<UsageRow>(), rows::declarations<ledger::Stamp>(), inventory_table, open_index);
  return text;
}

// Schema 2 had no labels. They are the last column, so the upgrade adds them to a large table instantly.
constexpr const char* add_labels = "ALTER TABLE usage ADD COLUMN \"labels\" TEXT";

// Schema 4 had no containers of pods.
const std::string& add_container() {
  static const std::string text =
      fmt::format("ALTER TABLE usage ADD COLUMN \"container\" TEXT; {}", open_index);
  return text;
}

const std::string& columns() {
  static const std::string text = fmt::format("{}", fmt::join(rows::columns<UsageRow>(), ", "));
  return text;
}

}  // namespace

Outcome<UsageStore::Opened> UsageStore::open(const std::string& path, int64_t now_s) {
  auto opened = sqlite::Database::open(path,
                                       {.name = "usage database",
                                        .option = "--state",
                                        .version = schema_version,
                                        .script = script().c_str(),
                                        .users = sqlite::Users::one_thread,
                                        .upgrades = {add_labels, inventory_table, add_container().c_str()}},
                                       now_s);
  if (!opened) return tl::unexpected(opened.error());
  return Opened{.store = UsageStore(std::move(opened->database)),
                .moved_aside = std::move(opened->moved_aside),
                .damage = std::move(opened->damage)};
}

namespace {

// Calls `visit` for each row of the statement until it returns false.
Outcome<void> read(const sqlite::Database& database, Statement& s,
                   const std::function<bool(UsageRow&&)>& visit) {
  while (s.row()) {
    UsageRow row;
    int column = 0;
    std::string wrong;
    if (!rows::read(s, column, row, wrong))
      return database.unknown_value(fmt::format("'{}' in usage record {} of {}", wrong, row.id, row.node));
    if (!visit(std::move(row))) return {};
  }
  return s.done() ? Outcome<void>() : database.trouble("reading");
}

}  // namespace

Outcome<CopyPosition> UsageStore::position(const std::string& node) {
  CopyPosition out;
  const auto record = [](Statement& s, int column) {
    return CopiedRecord{.id = static_cast<uint64_t>(s.number(column)),
                        .from_ns = s.number(column + 1),
                        .boot_id = s.text(column + 2),
                        .account = s.text(column + 3)};
  };
  // A ledger that was replaced may come back, so the one that was seen last counts.
  Statement last(
      database_.get(),
      "SELECT (SELECT max(ledger) FROM usage WHERE node = ?1), (SELECT ledger FROM seen WHERE node = ?1 "
      "ORDER BY utc_ns DESC, ledger DESC LIMIT 1)");
  last << node;
  if (!last.row()) return database_.trouble("reading");
  if (last.is_null(0)) return out;
  out.newest_ledger = static_cast<uint32_t>(last.number(0));
  out.ledger = last.is_null(1) ? out.newest_ledger : static_cast<uint32_t>(last.number(1));
  Statement newest(database_.get(),
                   "SELECT id, from_ns, boot_id, account FROM usage WHERE node = ? AND ledger = ? ORDER BY "
                   "id DESC LIMIT 1");
  newest << node << out.ledger;
  if (newest.row()) out.newest = record(newest, 0);
  if (!newest.done()) return database_.trouble("reading");
  if (!out.newest) return out;
  Statement oldest(
      database_.get(),
      "SELECT id, from_ns, boot_id, account FROM usage WHERE node = ? AND ledger = ? ORDER BY id LIMIT 1");
  oldest << node << out.ledger;
  if (oldest.row()) out.oldest = record(oldest, 0);
  if (!oldest.done()) return database_.trouble("reading");
  Statement open(database_.get(),
                 "SELECT id, from_ns, boot_id, account FROM usage INDEXED BY usage_open WHERE end_ns = 0 AND "
                 "node = ? AND "
                 "ledger = ? ORDER BY id");
  open << node << out.ledger;
  while (open.row()) out.open.push_back(record(open, 0));
  if (!open.done()) return database_.trouble("reading");
  out.seen = seen_at(node, out.ledger).value_or(ledger::Stamp{});
  return out;
}

std::optional<ledger::Stamp> UsageStore::seen_at(const std::string& node, uint32_t ledger) {
  Statement seen(database_.get(), fmt::format("SELECT {} FROM seen WHERE node = ? AND ledger = ?",
                                              fmt::join(rows::columns<ledger::Stamp>(), ", "))
                                      .c_str());
  seen << node << ledger;
  ledger::Stamp out;
  int column = 0;
  std::string wrong;
  if (!seen.row() || !rows::read(seen, column, out, wrong)) return std::nullopt;
  return out;
}

Outcome<void> UsageStore::of_workload(const std::string& kind, const std::string& name_space,
                                      const std::string& name, const std::function<bool(UsageRow&&)>& visit) {
  Statement s(database_.get(),
              fmt::format("SELECT {} FROM usage WHERE kind IN ('job', 'raycluster') AND name = ? AND "
                          "name_space = ? AND kind = ? ORDER BY node, ledger, id",
                          columns())
                  .c_str());
  s << name << name_space << kind;
  return read(database_, s, visit);
}

Outcome<void> UsageStore::write(const std::vector<UsageRow>& written, const std::optional<SeenLedger>& seen) {
  if (written.empty() && !seen) return {};
  std::vector<std::string> updates;
  for (const std::string& column : rows::columns<UsageRow>())
    if (column != "\"prepaid\"") updates.push_back(fmt::format("{0} = excluded.{0}", column));
  const std::string sql =
      fmt::format("INSERT INTO usage ({}) VALUES ({}) ON CONFLICT (node, ledger, id) DO UPDATE SET {}",
                  columns(), fmt::join(std::vector<std::string>(rows::columns<UsageRow>().size(), "?"), ", "),
                  fmt::join(updates, ", "));
  return database_.transact([&](sqlite3* db) {
    for (const UsageRow& row : written) {
      Statement s(db, sql.c_str());
      rows::bind(s, row);
      if (const int code = s.finish()) return code;
    }
    if (!seen) return SQLITE_OK;
    Statement s(db, fmt::format("INSERT OR REPLACE INTO seen (node, ledger, {}) VALUES (?, ?, ?, ?, ?)",
                                fmt::join(rows::columns<ledger::Stamp>(), ", "))
                        .c_str());
    s << seen->node << seen->ledger;
    rows::bind(s, seen->at);
    return s.finish();
  });
}

Outcome<uint32_t> UsageStore::ledger_of(const std::string& node, const CopiedRecord& record) {
  Statement s(database_.get(),
              "SELECT ledger FROM usage INDEXED BY usage_begin WHERE from_ns = ? AND node = ? AND id = ? AND "
              "boot_id = ?");
  s << record.from_ns << node << record.id << record.boot_id;
  const uint32_t out = s.row() ? static_cast<uint32_t>(s.number(0)) : 0;
  if (out == 0 && !s.done()) return database_.trouble("reading");
  return out;
}

Outcome<std::optional<UsageRow>> UsageStore::find(const std::string& node, uint32_t ledger, uint64_t id) {
  std::optional<UsageRow> out;
  Statement s(
      database_.get(),
      fmt::format("SELECT {} FROM usage WHERE node = ? AND ledger = ? AND id = ?", columns()).c_str());
  s << node << ledger << id;
  const auto done = read(database_, s, [&](UsageRow&& row) {
    out = std::move(row);
    return false;
  });
  if (!done) return tl::unexpected(done.error());
  return out;
}

Outcome<void> UsageStore::each(const bill::Window& window, const std::function<bool(UsageRow&&)>& visit) {
  bool goes_on = true;
  const auto pass_on = [&](UsageRow&& row) { return goes_on = visit(std::move(row)); };
  Statement began(
      database_.get(),
      fmt::format("SELECT {} FROM usage INDEXED BY usage_begin WHERE from_ns >= ? AND from_ns < ?", columns())
          .c_str());
  began << window.from << window.to;
  if (const auto done = read(database_, began, pass_on); !done || !goes_on) return done;
  const std::string before =
      fmt::format("SELECT {} FROM usage INDEXED BY usage_end WHERE from_ns < ? AND ", columns());
  Statement ended(database_.get(), (before + "end_ns > ?").c_str());
  ended << window.from << window.from;
  if (const auto done = read(database_, ended, pass_on); !done || !goes_on) return done;
  Statement open(database_.get(), (before + "end_ns = 0").c_str());
  open << window.from;
  return read(database_, open, pass_on);
}

Outcome<uint64_t> UsageStore::count() {
  Statement s(database_.get(), "SELECT count(*) FROM usage");
  if (!s.row()) return database_.trouble("reading");
  return static_cast<uint64_t>(s.number(0));
}

Outcome<std::vector<InventoryChange>> UsageStore::inventory() {
  std::vector<InventoryChange> out;
  Statement s(database_.get(), "SELECT node, from_ns, devices FROM inventory ORDER BY from_ns, node");
  while (s.row()) {
    InventoryChange change;
    int column = 0;
    std::string wrong;
    if (!rows::read(s, column, change, wrong))
      return database_.unknown_value(fmt::format("'{}' in its inventory", wrong));
    out.push_back(std::move(change));
  }
  if (!s.done()) return database_.trouble("reading");
  return out;
}

Outcome<void> UsageStore::record_inventory(const std::map<std::string, uint32_t>& devices, int64_t now_ns) {
  const auto before = inventory();
  if (!before) return tl::unexpected(before.error());
  std::map<std::string, uint32_t> known;
  for (const InventoryChange& change : *before) known[change.node] = change.devices;
  std::vector<InventoryChange> changes;
  for (const auto& [node, count] : devices)
    if (const auto last = known.find(node); last == known.end() || last->second != count)
      changes.push_back({.node = node, .from_ns = now_ns, .devices = count});
  for (const auto& [node, count] : known)
    if (count != 0 && !devices.contains(node))
      changes.push_back({.node = node, .from_ns = now_ns, .devices = 0});
  if (changes.empty()) return {};
  return database_.transact([&](sqlite3* db) {
    for (const InventoryChange& change : changes) {
      Statement s(db, "INSERT OR REPLACE INTO inventory VALUES (?, ?, ?)");
      rows::bind(s, change);
      if (const int code = s.finish()) return code;
    }
    return SQLITE_OK;
  });
}

}  // namespace carve::controller
