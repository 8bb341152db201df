#include "controller/store/controller_store.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "controller/objects/kind_table.h"
#include "objects/service_object.h"

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

TEST(ControllerStore, is_initially_empty) {
  const Directory dir;
  EXPECT_THAT(*opened(dir).all<NodeRecord>(), IsEmpty());
}

TEST(ControllerStore, keeps_the_nodes_across_a_restart_in_the_order_of_their_names) {
  const Directory dir;
  ASSERT_TRUE(opened(dir).write({node("b"), node("a")}));
  EXPECT_THAT(*opened(dir).all<NodeRecord>(), ElementsAre(node("a"), node("b")));
}

TEST(ControllerStore, identifies_a_node_by_its_name) {
  const Directory dir;
  ControllerStore store = opened(dir);
  ASSERT_TRUE(store.write({node("a"), node("b")}));
  NodeRecord moved = node("a", 10);
  moved.socket = "/elsewhere";
  ASSERT_TRUE(store.write({moved}));
  EXPECT_THAT(*store.all<NodeRecord>(), ElementsAre(moved, node("b")));
}

TEST(ControllerStore, writes_no_part_of_a_change_that_does_not_fit_on_the_disk) {
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

TEST(ControllerStore, moves_a_damaged_file_aside_and_keeps_it) {
  const Directory dir;
  std::ofstream(dir.file()) << std::string(8192, 'x');
  auto opened = ControllerStore::open(dir.file(), 77);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->moved_aside, dir.file() + ".corrupt-77");
  EXPECT_NE(opened->damage, "");
  EXPECT_TRUE(opened->store.write({node("a")}));
}

TEST(ControllerStore, keeps_events_of_the_previous_schema_without_a_uid) {
  const Directory dir;
  const KeptEvent event{.key = {.object = {objects::Kind::service, "default", "a"},
                                .uid = "u",
                                .reason = objects::EventReason::created},
                        .message = "1 replica",
                        .count = 3,
                        .first_ns = 1,
                        .last_ns = 2};
  {
    auto opened = ControllerStore::open(dir.file(), 1);
    ASSERT_TRUE(opened);
    ASSERT_TRUE(opened->store.write(std::span(&event, 1), {}));
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
                  "FROM event; DROP TABLE event; ALTER TABLE was RENAME TO event; DROP TABLE session; PRAGMA "
                  "user_version = 6",
                  nullptr, nullptr, nullptr),
              SQLITE_OK);
    sqlite3_close(db);
  }
  auto opened = ControllerStore::open(dir.file(), 1);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->moved_aside, "");
  KeptEvent expected = event;
  expected.key.uid.clear();
  EXPECT_THAT(*opened->store.all<KeptEvent>(), testing::ElementsAre(expected));
}

void execute(const Directory& dir, const char* sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(dir.file().c_str(), &db), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
  sqlite3_close(db);
}

Object service(std::string name) {
  Object out{.key = {objects::Kind::service, "default", std::move(name)},
             .labels = {{"team", "caf\xc3\xa9"}},
             .annotations = {{"a", ""}},
             .account = "research",
             .owner_uid = 1000,
             .generation = 3,
             .version = 7,
             .created_ns = 5,
             .is_ending = true};
  out.uid = "uid-" + out.key.name;
  out.spec = row_of(objects::Kind::service).read_spec(R"({"replicas": 3, "later": [1]})");
  out.status = objects::ServiceStatus{.phase = objects::WorkloadPhase::running};
  return out;
}

TEST(ControllerStore, restores_an_object_with_its_values_and_its_text) {
  const Directory dir;
  const Object written[] = {service("a"), service("b")};
  ASSERT_TRUE(opened(dir).write(written));
  ControllerStore store = opened(dir);
  const auto read = store.all<Object>();
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(*read, ElementsAre(written[0], written[1]));
  EXPECT_EQ(read->front().spec.as<objects::ServiceSpec>().replicas, 3u);
  EXPECT_EQ(read->front().spec.json(), R"({"replicas": 3, "later": [1]})");
  EXPECT_EQ(read->front().status.as<objects::ServiceStatus>().phase, objects::WorkloadPhase::running);
  EXPECT_EQ(*store.version(), 7u);
}

TEST(ControllerStore, removes_an_object_with_its_records_and_no_other_object) {
  const Directory dir;
  ControllerStore store = opened(dir);
  const Object written[] = {service("a"), service("b")};
  ASSERT_TRUE(store.write(written));
  for (const char* name : {"a", "b"}) {
    ASSERT_TRUE(store.write(WorkloadRecord{.uid = fmt::format("uid-{}", name)}));
    ASSERT_TRUE(
        store.write(ReplicaRecord{.slice = fmt::format("{}-1-0", name), .uid = fmt::format("uid-{}", name)}));
  }
  ASSERT_TRUE(store.remove(written[0].key, 8));
  ASSERT_TRUE(store.remove({objects::Kind::service, "default", "other"}, 9));
  EXPECT_THAT(*store.all<Object>(), ElementsAre(written[1]));
  EXPECT_EQ(store.all<ReplicaRecord>()->size(), 1u);
  EXPECT_EQ(store.all<WorkloadRecord>()->front().uid, "uid-b");
  EXPECT_EQ(*store.version(), 8u);
}

TEST(ControllerStore, fails_on_an_object_that_no_version_can_have_written) {
  for (const char* change : {"UPDATE object SET kind = 'Serivce'", "UPDATE object SET labels = '[1'",
                             "UPDATE object SET annotations = '{\"texts\":{\"a\":1}}'",
                             "UPDATE object SET spec = CAST(x'ff' AS TEXT)"}) {
    const Directory dir;
    ASSERT_TRUE(opened(dir).write(std::vector<Object>{service("a")}));
    execute(dir, change);
    const auto read = opened(dir).all<Object>();
    ASSERT_FALSE(read) << change;
    EXPECT_EQ(read.error().kind, FailureKind::failed_precondition);
    EXPECT_THAT(read.error().message, HasSubstr("an invalid object"));
  }
}

TEST(ControllerStore, leaves_out_an_event_of_a_later_version_and_fails_on_a_damaged_one) {
  const Directory dir;
  std::vector<KeptEvent> events(3);
  for (size_t i = 0; i < events.size(); ++i) events[i].key.uid = fmt::format("u{}", i);
  ASSERT_TRUE(opened(dir).write(events, {}));
  execute(
      dir,
      "UPDATE event SET reason = 'Later' WHERE uid = 'u0'; UPDATE event SET kind = 'Later' WHERE uid = 'u2'");
  EXPECT_THAT(*opened(dir).all<KeptEvent>(), ElementsAre(events[1]));
  execute(dir, "UPDATE event SET message = CAST(x'ff' AS TEXT) WHERE uid = 'u1'");
  EXPECT_FALSE(opened(dir).all<KeptEvent>());
}

TEST(ControllerStore, removes_the_event_with_the_given_object_and_reason) {
  const Directory dir;
  ControllerStore store = opened(dir);
  std::vector<KeptEvent> events(2);
  events[1].key.reason = objects::EventReason::deleted;
  ASSERT_TRUE(store.write(events, {}));
  ASSERT_TRUE(store.write({}, std::span(&events[0].key, 1)));
  EXPECT_THAT(*store.all<KeptEvent>(), ElementsAre(events[1]));
}

TEST(ControllerStore, stores_sessions_and_adds_their_table_to_a_file_without_one) {
  const Directory dir;
  const Session session{.name = "session-0123abcd",
                        .role = http::Role::user,
                        .account = "research",
                        .token = "ci",
                        .cookie_sha256 = "ab",
                        .page_key_sha256 = "cd",
                        .created_ns = 1,
                        .expires_ns = 2};
  ASSERT_TRUE(opened(dir).write(session));
  execute(dir, "DROP TABLE session; ALTER TABLE event DROP COLUMN caller; PRAGMA user_version = 7");
  EXPECT_THAT(*opened(dir).all<Session>(), IsEmpty());
  ASSERT_TRUE(opened(dir).write(session));
  EXPECT_THAT(*opened(dir).all<Session>(), ElementsAre(session));
  ASSERT_TRUE(opened(dir).remove(session));
  EXPECT_THAT(*opened(dir).all<Session>(), IsEmpty());
}

TEST(ControllerStore, keeps_events_of_the_previous_schema_without_a_caller) {
  const Directory dir;
  KeptEvent event{.key = {.object = {objects::Kind::queue, "default", "q"},
                          .uid = "u",
                          .reason = objects::EventReason::created},
                  .count = 1,
                  .first_ns = 1,
                  .last_ns = 2,
                  .caller = "uid 1000"};
  ASSERT_TRUE(opened(dir).write(std::span(&event, 1), {}));
  EXPECT_THAT(*opened(dir).all<KeptEvent>(), ElementsAre(event));
  execute(dir, "ALTER TABLE event DROP COLUMN caller; PRAGMA user_version = 8");
  event.caller.clear();
  EXPECT_THAT(*opened(dir).all<KeptEvent>(), ElementsAre(event));
}

TEST(ControllerStore, gives_a_token_with_an_unknown_role_the_rights_of_a_viewer) {
  const Directory dir;
  const Token token{.name = "ci",
                    .role = http::Role::operate,
                    .account = "research",
                    .sha256 = "ab",
                    .created_ns = 1,
                    .expires_ns = 2};
  ASSERT_TRUE(opened(dir).write(token));
  EXPECT_THAT(*opened(dir).all<Token>(), ElementsAre(token));
  execute(dir, "UPDATE token SET role = 'emperor'");
  EXPECT_EQ(opened(dir).all<Token>()->front().role, http::Role::viewer);
  ASSERT_TRUE(opened(dir).remove(token));
  EXPECT_THAT(*opened(dir).all<Token>(), IsEmpty());
}

TEST(ControllerStore, rejects_a_file_of_another_schema_and_names_the_option_that_helps) {
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

TEST(ControllerStore, deletes_the_callers_own_audit_records_if_it_has_many) {
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

TEST(ControllerStore, counts_all_slices_of_a_user_as_one_caller_in_the_audit) {
  const Directory dir;
  ControllerStore store = opened(dir);
  store.limit_audit(40);
  audit(store, "uid 1001", 10);
  for (int slice = 0; slice < 50; ++slice) audit(store, fmt::format("uid 1000 in slice s{}", slice), 1);
  EXPECT_EQ(audited(store).at("uid 1001"), 10u);
}

TEST(ControllerStore, keeps_a_quarter_of_the_audit_for_root) {
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

TEST(ControllerStore, never_deletes_answers_of_a_caller_with_few_for_one_with_many) {
  const Directory dir;
  ControllerStore store = opened(dir);
  const auto write = [&](const std::string& caller, int number) {
    ASSERT_TRUE(store.write(KeptAnswer{.caller = caller,
                                       .key = fmt::format("k{}", number),
                                       .sha256 = "x",
                                       .at_ns = number,
                                       .status = 201,
                                       .body = ""},
                            0, 10));
  };
  for (int i = 0; i < 3; ++i) write("root", i);
  for (int i = 10; i < 60; ++i) write("busy", i);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(store.find("root", fmt::format("k{}", i))->has_value()) << i;
  size_t busy = 0;
  for (int i = 10; i < 60; ++i) busy += store.find("busy", fmt::format("k{}", i))->has_value();
  EXPECT_EQ(busy, 7u);
  EXPECT_TRUE(store.find("busy", "k59")->has_value()) << "its newest are kept";
}

TEST(ControllerStore, keeps_the_newest_answers) {
  const Directory dir;
  ControllerStore store = opened(dir);
  const auto answer = [](const char* key, int64_t at_ns) {
    return KeptAnswer{.caller = "a", .key = key, .sha256 = "x", .at_ns = at_ns, .status = 201, .body = key};
  };
  for (const auto& [key, at] : {std::pair("k1", 1), std::pair("k2", 2), std::pair("k3", 3)})
    ASSERT_TRUE(store.write(answer(key, at), 0, 2));
  EXPECT_EQ(*store.find("a", "k1"), std::nullopt);
  EXPECT_EQ(*store.find("a", "k2"), answer("k2", 2));
  EXPECT_EQ(*store.find("b", "k2"), std::nullopt);
  ASSERT_TRUE(store.write(answer("k4", 9), 3, 10));
  EXPECT_EQ(*store.find("a", "k2"), std::nullopt) << "older than the lifetime";
  EXPECT_EQ(*store.find("a", "k3"), answer("k3", 3));
}

}  // namespace
}  // namespace carve::controller
