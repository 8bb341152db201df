#include "controller/store/controller_store.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

namespace carve::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

struct Directory {
  std::filesystem::path path;
  Directory() {
    char name[] = "/tmp/carve-controller-XXXXXX";
    path = mkdtemp(name);
  }
  ~Directory() { std::filesystem::remove_all(path); }
  std::string file() const { return path / "controller.db"; }
};

NodeRecord node(std::string name, int64_t last_seen_ns = 9) {
  return {.name = std::move(name),
          .socket = "/run/carve/carved.sock",
          .first_seen_ns = 7,
          .last_seen_ns = last_seen_ns,
          .agent_version = "0.1.0",
          .agent_started_ns = 5};
}

ControllerStore opened(const Directory& dir) {
  auto opened = ControllerStore::open(dir.file(), 1);
  EXPECT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->moved_aside, "");
  return std::move(opened->store);
}

TEST(ControllerStore, is_empty_at_first) {
  const Directory dir;
  EXPECT_THAT(*opened(dir).all<NodeRecord>(), IsEmpty());
}

TEST(ControllerStore, keeps_the_nodes_over_a_restart_in_the_order_of_their_names) {
  const Directory dir;
  ASSERT_TRUE(opened(dir).write({node("b"), node("a")}));
  EXPECT_THAT(*opened(dir).all<NodeRecord>(), ElementsAre(node("a"), node("b")));
}

TEST(ControllerStore, a_node_is_identified_by_its_name) {
  const Directory dir;
  ControllerStore store = opened(dir);
  ASSERT_TRUE(store.write({node("a"), node("b")}));
  NodeRecord moved = node("a", 10);
  moved.socket = "/elsewhere";
  ASSERT_TRUE(store.write({moved}));
  EXPECT_THAT(*store.all<NodeRecord>(), ElementsAre(moved, node("b")));
}

TEST(ControllerStore, a_change_that_does_not_fit_on_the_disk_is_not_written_in_part) {
  const Directory dir;
  ControllerStore store = opened(dir);
  ASSERT_TRUE(store.write({node("a")}));
  store.limit_pages(1);
  std::vector<NodeRecord> many = {node("a", 10)};
  for (int i = 0; i < 1000; ++i) many.push_back(node(fmt::format("n{}", i)));
  const auto written = store.write(many);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().kind, FailureKind::unavailable);
  EXPECT_THAT(written.error().message,
              HasSubstr("writing the controller database " + dir.file() + ": the disk is full"));
  EXPECT_THAT(*store.all<NodeRecord>(), ElementsAre(node("a")));
}

TEST(ControllerStore, a_damaged_file_is_moved_aside_and_kept) {
  const Directory dir;
  std::ofstream(dir.file()) << std::string(8192, 'x');
  auto opened = ControllerStore::open(dir.file(), 77);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->moved_aside, dir.file() + ".corrupt-77");
  EXPECT_NE(opened->damage, "");
  EXPECT_TRUE(opened->store.write({node("a")}));
}

TEST(ControllerStore, events_of_the_schema_before_are_kept_without_a_uid) {
  const Directory dir;
  const EventRecord event{.kind = "Service",
                          .name_space = "default",
                          .name = "a",
                          .uid = "u",
                          .reason = "Created",
                          .message = "1 replica",
                          .count = 3,
                          .first_ns = 1,
                          .last_ns = 2};
  {
    auto opened = ControllerStore::open(dir.file(), 1);
    ASSERT_TRUE(opened);
    ASSERT_TRUE(opened->store.write(std::vector<EventRecord>{event}, {}));
  }
  {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(dir.file().c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(
                  db,
                  "CREATE TABLE was (\"kind\" TEXT, \"name_space\" TEXT, \"name\" TEXT, \"reason\" TEXT, "
                  "\"message\" TEXT, \"count\" INTEGER, \"first_ns\" INTEGER, \"last_ns\" INTEGER, "
                  "PRIMARY KEY (kind, name_space, name, reason)) STRICT;"
                  "INSERT INTO was SELECT kind, name_space, name, reason, message, count, first_ns, last_ns "
                  "FROM event; DROP TABLE event; ALTER TABLE was RENAME TO event; PRAGMA user_version = 6",
                  nullptr, nullptr, nullptr),
              SQLITE_OK);
    sqlite3_close(db);
  }
  auto opened = ControllerStore::open(dir.file(), 1);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->moved_aside, "");
  EventRecord expected = event;
  expected.uid.clear();
  EXPECT_THAT(*opened->store.all<EventRecord>(), testing::ElementsAre(expected));
}

TEST(ControllerStore, a_file_of_another_schema_is_refused_with_the_option_that_helps) {
  const Directory dir;
  {
    const sqlite::Schema newer{"controller database", "--state", ControllerStore::schema_version + 1,
                               "CREATE TABLE t (id INTEGER) STRICT;"};
    ASSERT_TRUE(sqlite::Database::open(dir.file(), newer, 1));
  }
  const auto refused = ControllerStore::open(dir.file(), 1);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("the controller database " + dir.file()));
  EXPECT_THAT(refused.error().message, HasSubstr("--state"));
}

// Appends this many audit records of the caller, with different times.
void audit(ControllerStore& store, const std::string& caller, int records) {
  static int64_t at_ns = 0;
  for (int i = 0; i < records; ++i)
    ASSERT_TRUE(
        store.append({.at_ns = ++at_ns, .caller = caller, .address = "unix", .change = "POST /v1/a"}));
}

std::map<std::string, size_t> audited(ControllerStore& store) {
  std::map<std::string, size_t> out;
  const auto records = store.all<AuditRecord>();
  for (const AuditRecord& record : *records) ++out[record.caller];
  EXPECT_TRUE(std::ranges::is_sorted(*records, {}, &AuditRecord::at_ns));
  return out;
}

TEST(ControllerStore, a_caller_with_many_audit_records_displaces_its_own) {
  const Directory dir;
  ControllerStore store = opened(dir);
  store.limit_audit(40);
  audit(store, "root", 5);
  audit(store, "uid 1001", 5);
  audit(store, "anonymous", 200);
  EXPECT_THAT(audited(store), ElementsAre(Pair("anonymous", 30), Pair("root", 5), Pair("uid 1001", 5)));
  EXPECT_EQ(store.all<AuditRecord>()->back().at_ns - 29, store.all<AuditRecord>()->at(10).at_ns)
      << "the newest ones are kept";
  audit(store, "uid 1001", 100);
  EXPECT_THAT(audited(store), ElementsAre(Pair("anonymous", 17), Pair("root", 5), Pair("uid 1001", 18)));
}

TEST(ControllerStore, a_user_has_one_part_of_the_audit_in_all_its_slices) {
  const Directory dir;
  ControllerStore store = opened(dir);
  store.limit_audit(40);
  audit(store, "uid 1001", 10);
  for (int slice = 0; slice < 50; ++slice) audit(store, fmt::format("uid 1000 in slice s{}", slice), 1);
  EXPECT_EQ(audited(store).at("uid 1001"), 10u);
}

TEST(ControllerStore, a_quarter_of_the_audit_is_kept_for_root) {
  const Directory dir;
  ControllerStore store = opened(dir);
  store.limit_audit(40);
  audit(store, "root", 20);
  for (int uid = 100'000; uid < 100'100; ++uid) audit(store, fmt::format("uid {}", uid), 1);
  EXPECT_EQ(audited(store).at("root"), 10u);
  EXPECT_EQ(store.all<AuditRecord>()->size(), 40u);
}

TEST(ControllerStore, counts_the_audit_records_again_after_a_restart) {
  const Directory dir;
  {
    ControllerStore store = opened(dir);
    audit(store, "uid 1001", 5);
    audit(store, "uid 1000", 35);
  }
  ControllerStore store = opened(dir);
  store.limit_audit(40);
  audit(store, "uid 1000", 50);
  EXPECT_THAT(audited(store), ElementsAre(Pair("uid 1000", 35), Pair("uid 1001", 5)));
}

TEST(ControllerStore, a_caller_with_many_answers_displaces_none_of_a_caller_with_few) {
  const Directory dir;
  ControllerStore store = opened(dir);
  const auto write = [&](const std::string& caller, int number) {
    ASSERT_TRUE(store.write(AnswerRecord{.caller = caller,
                                         .key = fmt::format("k{}", number),
                                         .sha256 = "x",
                                         .at_ns = number,
                                         .status = 201,
                                         .body = ""},
                            0, 10));
  };
  for (int i = 0; i < 3; ++i) write("root", i);
  for (int i = 10; i < 60; ++i) write("busy", i);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(store.answers("root", fmt::format("k{}", i))->size(), 1u) << i;
  size_t busy = 0;
  for (int i = 10; i < 60; ++i) busy += store.answers("busy", fmt::format("k{}", i))->size();
  EXPECT_EQ(busy, 7u);
  EXPECT_EQ(store.answers("busy", "k59")->size(), 1u) << "its newest are kept";
}

TEST(ControllerStore, keeps_the_newest_answers) {
  const Directory dir;
  ControllerStore store = opened(dir);
  const auto answer = [](const char* key, int64_t at_ns) {
    return AnswerRecord{.caller = "a", .key = key, .sha256 = "x", .at_ns = at_ns, .status = 201, .body = key};
  };
  for (const auto& [key, at] : {std::pair("k1", 1), std::pair("k2", 2), std::pair("k3", 3)})
    ASSERT_TRUE(store.write(answer(key, at), 0, 2));
  EXPECT_THAT(*store.answers("a", "k1"), IsEmpty());
  EXPECT_THAT(*store.answers("a", "k2"), ElementsAre(answer("k2", 2)));
  EXPECT_THAT(*store.answers("b", "k2"), IsEmpty());
  ASSERT_TRUE(store.write(answer("k4", 9), 3, 10));
  EXPECT_THAT(*store.answers("a", "k2"), IsEmpty()) << "older than the lifetime";
  EXPECT_THAT(*store.answers("a", "k3"), ElementsAre(answer("k3", 3)));
}

}  // namespace
}  // namespace carve::controller
