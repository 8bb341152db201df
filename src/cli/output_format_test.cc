// Tests the formats of -o and the order of --sort-by.
#include "cli/output_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "wire/api/json_value.h"

namespace carve::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(OutputFormat, parses_columns_with_commas_in_brackets) {
  const auto format =
      parse_output_format("custom-columns=NAME:.metadata.name,BOTH:.metadata['a,b','c'],X:{.x}");
  ASSERT_TRUE(format) << format.error();
  EXPECT_THAT(custom_heading(*format), ElementsAre("NAME", "BOTH", "X"));
  const auto object =
      api::parse(R"({"metadata": {"name": "n\u001b[2J", "a,b": 1, "c": {"d": true}}})").value();
  EXPECT_THAT(custom_cells(*format, object).value(), ElementsAre("n?[2J", R"(1,{"d":true})", "<none>"));
}

TEST(OutputFormat, rejects_a_column_that_finds_too_many_values) {
  api::Json object;
  for (int i = 0; i < 40; ++i) object = api::Json{{"a", std::move(object)}};
  std::string path;
  for (int i = 0; i < 8; ++i) path += "..a";  // Finds each value once for each way to it.
  const auto format = parse_output_format("custom-columns=ZERO:.b,ALL:" + path);
  ASSERT_TRUE(format) << format.error();
  const auto cells = custom_cells(*format, object);
  ASSERT_FALSE(cells);
  EXPECT_THAT(cells.error(), HasSubstr("column ALL: the path finds more than 10000000 values"));
}

TEST(OutputFormat, rejects_what_it_cannot_print) {
  for (const auto& [text, message] : std::initializer_list<std::pair<const char*, const char*>>{
           {"xml", "'xml' is not an output format; use table"},
           {"custom-columns=", "'' is not a column; write HEADING:PATH"},
           {"custom-columns=NAME", "'NAME' is not a column"},
           {"custom-columns=NAME:", "'NAME:' is not a column"},
           {"custom-columns=A:.a[", "column A: "},
           {"jsonpath={.a", "jsonpath: '}' is missing"},
           {"jsonpath=", "the expression is empty"}}) {
    const auto format = parse_output_format(text);
    ASSERT_FALSE(format) << text;
    EXPECT_THAT(format.error(), HasSubstr(message));
  }
  EXPECT_EQ(parse_output_format("=json")->kind, OutputFormat::Kind::json) << "-o=json";
}

std::vector<std::string> sorted(const char* values, const char* path = ".v") {
  auto list = api::parse(values).value();
  sort_list(list, parse_path(path).value());
  std::vector<std::string> out;
  for (const api::Json& object : list) out.push_back(object["n"]);
  return out;
}

TEST(SortBy, orders_numbers_amounts_and_texts_and_puts_missing_values_last) {
  EXPECT_THAT(sorted(R"([{"n":"a","v":10},{"n":"b"},{"n":"c","v":9},{"n":"d","v":10}])"),
              ElementsAre("c", "a", "d", "b"));
  EXPECT_THAT(sorted(R"([{"n":"a","v":"16GiB"},{"n":"b","v":"4GiB"},{"n":"c","v":"512MiB"}])"),
              ElementsAre("c", "b", "a"));
  EXPECT_THAT(sorted(R"([{"n":"a","v":"2026-11-02T"},{"n":"b","v":"2026-11-01T"}])"), ElementsAre("b", "a"));
  EXPECT_THAT(sorted(R"([{"n":"a","v":"x"},{"n":"b","v":3},{"n":"c","v":null}])"),
              ElementsAre("b", "a", "c"));
}

}  // namespace
}  // namespace carve::cli
