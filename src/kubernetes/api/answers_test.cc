#include "kubernetes/api/answers.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace carve::kubernetes {
namespace {

using testing::HasSubstr;

constexpr const char* pod =
    R"({"kind":"PartialObjectMetadata","metadata":{"name":"web-0","namespace":"a","uid":"u1",
  "resourceVersion":"7","labels":{"carve.dev/sliced":"true"},"annotations":{"carve.dev/slices":"{\"v\":1}"},
  "deletionTimestamp":"2026-01-01T00:00:00Z","managedFields":[{"fieldsV1":{"f:metadata":{"name":"x","uid":"y"}}}],
  "ownerReferences":[{"uid":"o1","controller":false},{"uid":"o2","controller":true},{"uid":"o3"}]}})";

const ObjectMeta& expected() {
  static const ObjectMeta object{.name_space = "a",
                                 .name = "web-0",
                                 .uid = "u1",
                                 .resource_version = "7",
                                 .labels = {{"carve.dev/sliced", "true"}},
                                 .annotations = {{"carve.dev/slices", "{\"v\":1}"}},
                                 .controller_uid = "o2",
                                 .is_deleting = true};
  return object;
}

TEST(Answers, a_page_contains_the_metadata_of_its_items) {
  const auto page = read_list_page(fmt::format(
      R"({{"metadata":{{"resourceVersion":"9","continue":"abc","remainingItemCount":5}},"items":[{},{{"metadata":{{"name":"b","uid":"u2"}}}}]}})",
      pod));
  ASSERT_TRUE(page) << page.error();
  EXPECT_EQ(page->resource_version, "9");
  EXPECT_EQ(page->next, "abc");
  ASSERT_EQ(page->items.size(), 2u);
  EXPECT_EQ(page->items[0], expected());
  EXPECT_EQ(page->items[1].labels.size(), 0u) << "values of the previous item are cleared";
}

TEST(Answers, labels_and_annotations_with_other_keys_are_skipped) {
  const std::vector<std::string_view> keys{"carve.dev/slices"};
  const std::string list = fmt::format(R"({{"metadata":{{"resourceVersion":"9"}},"items":[{}]}})", pod);
  const std::string line = fmt::format(R"({{"type":"ADDED","object":{}}})", pod);
  for (const ObjectMeta& object :
       {read_list_page(list, keys)->items[0], read_watch_event(line, keys)->object}) {
    EXPECT_TRUE(object.labels.empty());
    EXPECT_EQ(object.annotations, expected().annotations);
    EXPECT_EQ(object.uid, "u1");
  }
}

TEST(Answers, a_watch_event_contains_its_type_and_object) {
  const auto event = read_watch_event(fmt::format(R"({{"type":"MODIFIED","object":{}}})", pod));
  ASSERT_TRUE(event) << event.error();
  EXPECT_EQ(event->type, WatchEvent::Type::modified);
  EXPECT_EQ(event->object, expected());
  const auto error = read_watch_event(
      R"({"type":"ERROR","object":{"kind":"Status","metadata":{},"code":410,"message":"too old resource version"}})");
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, 410u);
  EXPECT_EQ(error->message, "too old resource version");
  const auto bookmark =
      read_watch_event(R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"12"}}})");
  ASSERT_TRUE(bookmark);
  EXPECT_EQ(bookmark->object.resource_version, "12");
}

TEST(Answers, invalid_watch_events_are_rejected) {
  const std::pair<std::string, const char*> rows[] = {
      {"", "invalid JSON"},
      {"{", "invalid JSON"},
      {R"({"type":"ADDED","object":{"metadata":{"name":"a","uid":"u","resourceVersion":"1"}}} x)",
       "invalid JSON"},
      {R"({"type":"X"})", "unknown type 'X'"},
      {"[]", "unknown type ''"},
      {R"({"type":"ADDED","object":{"metadata":{"resourceVersion":"1"}}})", "has no uid or no name"},
      {R"({"type":"ADDED","object":{"metadata":{"name":"a","uid":"u"}}})", "has no resourceVersion"},
      {R"({"type":"BOOKMARK","object":{}})", "has no resourceVersion"},
      {std::string(100'000, '['), "deeper than 64 levels"},
      {"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"\xff\"}}}", "invalid JSON"}};
  for (const auto& [line, why] : rows) {
    const auto event = read_watch_event(line);
    ASSERT_FALSE(event) << line.substr(0, 80);
    EXPECT_THAT(event.error(), HasSubstr(why));
  }
}

TEST(Answers, invalid_lists_are_rejected) {
  for (const char* text :
       {"{}", "[]", "1", "{", R"({"metadata":{"resourceVersion":"1"},"items":[{}]})", R"({"metadata":{}})"})
    EXPECT_FALSE(read_list_page(text)) << text;
  EXPECT_TRUE(read_list_page(R"({"metadata":{"resourceVersion":"1"},"items":[]})"));
}

TEST(ApiStatus, contains_reason_and_message) {
  const ApiStatus status = read_status(
      R"({"kind":"Status","status":"Failure","message":"pods \"a\" not found","reason":"NotFound","code":404})");
  EXPECT_EQ(status.reason, "NotFound");
  EXPECT_EQ(status.message, "pods \"a\" not found");
  EXPECT_EQ(read_status("<html>").message, "");
}

TEST(ServerVersion, contains_the_numbers_and_the_text) {
  const auto version = read_server_version(R"({"major":"1","minor":"36","gitVersion":"v1.36.2"})");
  ASSERT_TRUE(version) << version.error();
  EXPECT_EQ(version->text, "1.36.2");
  EXPECT_EQ(read_server_version(R"({"major":"1","minor":"28+","gitVersion":"v1.28.3-gke.1"})")->minor, 28u);
  EXPECT_LT((ServerVersion{.major = 1, .minor = 37}), (ServerVersion{.major = 1, .minor = 38}));
  EXPECT_LT((ServerVersion{.major = 1, .minor = 38}), (ServerVersion{.major = 2, .minor = 0}));
  for (const char* text : {"", "{}", "[]", R"({"major":"","minor":"36"})", R"({"major":"x"})"})
    EXPECT_FALSE(read_server_version(text)) << text;
}

TEST(Answers, a_single_object_is_parsed_like_an_item_of_a_list) {
  const auto object = read_object(
      R"({"kind":"PartialObjectMetadata","metadata":{"name":"a","namespace":"n","uid":"u","labels":{"x":"y"},)"
      R"("ownerReferences":[{"uid":"o","controller":true}]},"status":{"uid":"other"}})");
  ASSERT_TRUE(object) << object.error();
  EXPECT_EQ(object->uid, "u");
  EXPECT_EQ(object->labels.at("x"), "y");
  EXPECT_EQ(object->controller_uid, "o");
  EXPECT_FALSE(read_object(R"({"metadata":{"name":"a"}})"));
  EXPECT_FALSE(read_object("{"));
}

}  // namespace
}  // namespace carve::kubernetes
