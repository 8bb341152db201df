#include "fronts/documents.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "wire/objects/object.h"

namespace carve::fronts {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal(std::string_view text) {
  const auto read = documents_of(text);
  return read ? "accepted: " + (read->empty() ? "" : read->front()) : read.error().front().sentence;
}

TEST(Documents, json_and_yaml_say_the_same) {
  const auto yaml = documents_of("a: 1\nb: [x, \"2\", true, ~, -3, 0x10, 0o17]\nc: {d: 'e'}\n");
  ASSERT_TRUE(yaml) << yaml.error().front().sentence;
  EXPECT_THAT(*yaml, ElementsAre(R"({"a":1,"b":["x","2",true,null,-3,16,15],"c":{"d":"e"}})"));
  EXPECT_EQ(*documents_of(yaml->front()), *yaml);
}

TEST(Documents, are_separated_by_lines) {
  EXPECT_THAT(*documents_of("---\na: 1\n---\n---\nb: 2\n"), ElementsAre(R"({"a":1})", R"({"b":2})"));
  EXPECT_THAT(*documents_of("{\"a\":1}\n---\n{\"b\":2}\n---\n"), ElementsAre("{\"a\":1}\n", "\n{\"b\":2}\n"));
  EXPECT_TRUE(documents_of("")->empty());
}

TEST(Documents, a_decimal_number_keeps_its_digits) {
  EXPECT_THAT(*documents_of("a: 0.30\nb: 1e3\nc: 4GiB\n"),
              ElementsAre(R"({"a":"0.30","b":"1e3","c":"4GiB"})"));
}

TEST(Documents, what_other_parsers_read_differently_is_refused_with_its_line) {
  const std::pair<const char*, const char*> table[] = {
      {"a: 1\nb: 010\n", "line 2: 010 is 8 times smaller in some versions of YAML"},
      {"a: 1\na: 2\n", "line 2: a: the key is there twice"},
      {"a: &x {b: 1}\nc:\n  <<: *x\n", "line 3: the merge key << is not read"},
      {"a: !!python/object x\n", "line 1: the tag tag:yaml.org,2002:python/object has no meaning here"},
      {"? [a]\n: 1\n", "a key is not a text"},
      {"- a\n", "the document is not an object with fields"},
      {"a: \"\\0\"\n", "NUL"},
      {"a: \"\\ud83d\\ude00\"\n", "line 1"},
      {"a: 99999999999999999999\n", "line 1: 99999999999999999999 does not fit 64 bits"},
      {"a: [1\n", "line "},
      {R"({"a":1,"a":2})", "a: the key is there twice"},
      {R"({"a":{"b":1,"b":2}})", "b: the key is there twice"},
      {R"({"a":"\u0000"})", "NUL"},
      {R"({"a":)", "is not JSON"},
      {R"({"a":1} {"b":1})", "is not JSON"},
  };
  for (const auto& [text, expected] : table) EXPECT_THAT(refusal(text), HasSubstr(expected)) << text;
  EXPECT_EQ(*documents_of(R"({"a":{"b":1},"c":{"b":2}})"),
            std::vector<std::string>{R"({"a":{"b":1},"c":{"b":2}})"});
}

TEST(Documents, hostile_texts_are_refused_at_small_cost) {
  EXPECT_THAT(refusal(std::string(objects::max_document_bytes + 1, 'a')),
              HasSubstr("at most 1048576 are read"));
  EXPECT_THAT(refusal("a: " + std::string(5000, '[') + std::string(5000, ']')), Not(HasSubstr("accepted")));
  EXPECT_THAT(refusal(std::string(100000, '{')), Not(HasSubstr("accepted")));
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    laughs += fmt::format("a{}: &a{} [", i, i);
    for (int j = 0; j < 10; ++j) laughs += fmt::format("*a{}, ", i - 1);
    laughs += "]\n";
  }
  EXPECT_THAT(refusal(laughs), HasSubstr("there are more than 20000 values, with aliases expanded"));
  EXPECT_THAT(refusal("a: \"\xff\xfe\"\n"), Not(HasSubstr("accepted")));
  std::string many;
  for (int i = 0; i < 200; ++i) many += "---\na: 1\n";
  EXPECT_THAT(refusal(many), HasSubstr("there are more than 100 documents"));
}

}  // namespace
}  // namespace carve::fronts
