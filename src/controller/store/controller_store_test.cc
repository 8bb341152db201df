#include "controller/store/controller_store.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

namespace carve::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

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
  EXPECT_TRUE(opened) << opened.error().sentence;
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

TEST(ControllerStore, what_does_not_fit_on_the_disk_is_written_in_no_part) {
  const Directory dir;
  ControllerStore store = opened(dir);
  ASSERT_TRUE(store.write({node("a")}));
  store.limit_pages(1);
  std::vector<NodeRecord> many = {node("a", 10)};
  for (int i = 0; i < 1000; ++i) many.push_back(node(fmt::format("n{}", i)));
  const auto written = store.write(many);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().kind, FailureKind::unavailable);
  EXPECT_THAT(written.error().sentence,
              HasSubstr("writing the controller database " + dir.file() + ": the disk is full"));
  EXPECT_THAT(*store.all<NodeRecord>(), ElementsAre(node("a")));
}

TEST(ControllerStore, a_damaged_file_is_moved_aside_and_kept) {
  const Directory dir;
  std::ofstream(dir.file()) << std::string(8192, 'x');
  auto opened = ControllerStore::open(dir.file(), 77);
  ASSERT_TRUE(opened) << opened.error().sentence;
  EXPECT_EQ(opened->moved_aside, dir.file() + ".corrupt-77");
  EXPECT_NE(opened->damage, "");
  EXPECT_TRUE(opened->store.write({node("a")}));
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
  EXPECT_THAT(refused.error().sentence, HasSubstr("the controller database " + dir.file()));
  EXPECT_THAT(refused.error().sentence, HasSubstr("--state"));
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
