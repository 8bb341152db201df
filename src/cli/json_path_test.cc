// Tests JSONPath templates: what kubectl's documentation shows, and hostile expressions.
#include "cli/json_path.h"

#include <gtest/gtest.h>

#include <random>

#include "wire/api/json_value.h"

namespace carve::cli {
namespace {

const api::Json& services() {
  static const api::Json list = api::parse(R"({"items": [
    {"metadata": {"name": "a", "labels": {"app": "web", "carve.dev/team": "red"}}, "spec": {"replicas": 1},
     "status": {"phase": "Running", "replicaList": [{"index": 0, "node": "n1"}, {"index": 1, "node": "n2"}]}},
    {"metadata": {"name": "b"}, "spec": {"replicas": 3, "stopped": true}, "status": {"phase": "Stopped", "replicaList": []}},
    {"metadata": {"name": "c"}, "spec": {"replicas": 12}, "status": {"phase": "Running"}}]})")
                                    .value();
  return list;
}

std::string shown(std::string_view text) {
  const auto parsed = parse_template(text);
  if (!parsed) return "error: " + parsed.error();
  const auto out = printed(*parsed, services());
  return out ? *out : "error: " + out.error();
}

TEST(JsonPath, prints_fields_lists_and_ranges_as_kubectl_does) {
  EXPECT_EQ(shown("{.items[*].metadata.name}"), "a b c");
  EXPECT_EQ(shown(".items[*].metadata.name"), "a b c") << "without braces";
  EXPECT_EQ(shown("items[0].metadata.name"), "a");
  EXPECT_EQ(shown("first: {.items[0].metadata.name}, last: {$.items[-1].metadata.name}"),
            "first: a, last: c");
  EXPECT_EQ(shown("{.items[0:2].metadata.name}|{.items[::2].metadata.name}|{.items[-2:].metadata.name}"),
            "a b|a c|b c");
  EXPECT_EQ(shown("{.items[0,2].metadata.name}"), "a c");
  EXPECT_EQ(shown("{.items[0].metadata['name','labels']}"), R"(a {"app":"web","carve.dev/team":"red"})");
  EXPECT_EQ(shown(R"({.items[0].metadata.labels.carve\.dev/team})"), "red");
  EXPECT_EQ(shown("{.items[0]['metadata.name']}"), "a") << "kubectl reads dots in quotes as a path";
  EXPECT_EQ(shown("{.items[0].metadata.labels['carve.dev/team']}"), "red");
  EXPECT_EQ(shown("{..node}"), "n1 n2");
  EXPECT_EQ(shown("{.items[1].spec.*}"), "3 true");
  EXPECT_EQ(shown("{range .items[*]}{.metadata.name}={.spec.replicas}{\"\\n\"}{end}"), "a=1\nb=3\nc=12\n");
  EXPECT_EQ(shown("{range .items[*]}{.metadata.name}{range .status.replicaList[*]}[{.node}]{end};{end}"),
            "a[n1][n2];b;c;");
  EXPECT_EQ(shown("{.items[1].spec.stopped}"), "true");
}

TEST(JsonPath, filters_by_one_comparison) {
  EXPECT_EQ(shown(R"({.items[?(@.status.phase=="Running")].metadata.name})"), "a c");
  EXPECT_EQ(shown("{.items[?(@.status.phase!='Running')].metadata.name}"), "b");
  EXPECT_EQ(shown("{.items[?(@.spec.replicas>=3)].metadata.name}"), "b c") << "numbers are not texts";
  EXPECT_EQ(shown("{.items[?(@.spec.replicas<3)].metadata.name}"), "a");
  EXPECT_EQ(shown("{.items[?(@.spec.stopped)].metadata.name}"), "b");
  EXPECT_EQ(shown("{.items[?(@.spec.stopped==true)].metadata.name}"), "b");
  EXPECT_EQ(shown(R"({.items[?(@.status.replicaList[?(@.node=="n2")])].metadata.name})"), "a");
  EXPECT_EQ(shown("{.items[?(@.spec.replicas==$.items[1].spec.replicas)].metadata.name}"), "b");
}

TEST(JsonPath, finds_nothing_where_an_object_has_no_such_field) {
  for (const char* path :
       {"{.nothing}", "{.items.metadata}", "{.items[99]}", "{.items[0].metadata[0]}", "{.items[1:1]}",
        "{.items[0].metadata.name.x}", "{.items[?(@.x==1)]}", "{range .x[*]}y{end}", "{.items[9:3]}"})
    EXPECT_EQ(shown(path), "") << path;
}

TEST(JsonPath, rejects_wrong_expressions_with_a_message) {
  for (const char* text : {"",
                           "{",
                           "{.a",
                           "{}}{",
                           "{.a}{",
                           "{.items[}",
                           "{.items[*}",
                           "{.items[?]}",
                           "{.items[?(@.a==)]}",
                           "{.items[?(@.a=='b)]}",
                           "{range .items[*]}{.a}",
                           "{end}",
                           "{.a[1:2:0]}",
                           "{.a[1:2:-1]}",
                           "{.a['b]}",
                           "{.a['b',]}",
                           "{.a[9999999999]}",
                           "{\"a}",
                           "{.a[0,]}",
                           "{.a[?(@.b=='c' && @.d)]}",
                           "a b",

                           "{.a[?(1e)]}",
                           ".a]"}) {
    const std::string message = shown(text);
    if (std::string_view(text) == "{}}{") continue;
    EXPECT_EQ(message.rfind("error: ", 0), 0u) << text << " -> " << message;
  }
  EXPECT_NE(shown("{.a[?(@.b=='c' && @.d)]}").find("'&&' and '||' are not supported"), std::string::npos);
}

TEST(JsonPath, limits_depth_length_and_work) {
  std::string ranges, filters = "@.a";
  for (size_t i = 0; i <= max_template_depth; ++i) {
    ranges += "{range .items[*]}";
    filters = "@.a[?(" + filters + ")]";
  }
  EXPECT_NE(shown(ranges).find("ranges in each other"), std::string::npos);
  EXPECT_NE(shown("{" + filters + "}").find("filters in each other"), std::string::npos);
  EXPECT_NE(shown(std::string(max_template_bytes + 1, 'a')).find("more than 4096 bytes"), std::string::npos);
  std::string everything, ends;
  for (int i = 0; i < 5; ++i) {
    everything += "{range $..*}";
    ends += "{end}";
  }
  const auto parsed = parse_template(everything + ends);
  ASSERT_TRUE(parsed);
  api::Json deep = 1;
  for (int i = 0; i < 14; ++i) deep = api::Json{{"a", deep}, {"b", {1, 2, 3, 4}}};
  const auto out = printed(*parsed, deep);
  ASSERT_FALSE(out);
  EXPECT_NE(out.error().find("more than 10000000 values"), std::string::npos) << out.error();
}

TEST(JsonPath, survives_any_text) {
  constexpr std::string_view letters = "{}[]().,:*?@$'\"\\=!<> range end items name 0-1\n";
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (size_t n = random() % 24; n > 0; --n) text += letters[random() % letters.size()];
    if (const auto parsed = parse_template("{.items" + text)) (void)printed(*parsed, services());
    if (const auto path = parse_path(text)) (void)values_at(*path, services());
  }
}

}  // namespace
}  // namespace carve::cli
