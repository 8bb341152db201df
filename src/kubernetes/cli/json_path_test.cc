#include "kubernetes/cli/json_path.h"

#include <gmock/gmock.h>

namespace carve::kubernetes::cli {
namespace {

constexpr const char* document =
    R"({"nodes":[{"name":"a","devices":[1,2]},{"name":"b","devices":[]}],"all":true})";

TEST(JsonPath, selects_fields_as_kubectl_does) {
  const std::pair<const char*, const char*> rows[] = {
      {"{.nodes[0].name}", "a"},
      {"{.nodes[*].name}", "a b"},
      {"x {.all}\n", "x true\n"},
      {R"({range .nodes[*]}{.name}{"\n"}{end})", "a\nb\n"},
      {R"({range .nodes[*]}{.name}:{range .devices[*]}{.}{"}"}{end};{end})", "a:1}2};b:;"},
      {"{.nodes[7].name}{.none}", ""},
      {"{.nodes[0].devices}", "[1,2]"},
      {"", ""}};
  for (const auto& [path, text] : rows) {
    const auto made = json_path_text(document, path);
    ASSERT_TRUE(made) << path << ": " << made.error();
    EXPECT_EQ(*made, text) << path;
  }
}

TEST(JsonPath, rejects_unsupported_templates) {
  for (const char* path : {"{", "{.nodes[}", "{.nodes[?(@.name)]}", "{nodes}", "{end}", "{range .nodes[*]}",
                           "{\"x}", "{.nodes[-1]}"})
    EXPECT_FALSE(json_path_text(document, path)) << path;
}

}  // namespace
}  // namespace carve::kubernetes::cli
