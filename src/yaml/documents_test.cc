#include "yaml/documents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace carve::yaml {
namespace {

using testing::HasSubstr;
using namespace std::string_view_literals;

using Texts = std::vector<std::string>;

TEST(Documents, are_split_into_json_texts) {
  const struct {
    std::string_view text;
    Texts documents;
  } rows[] = {
      {R"({"a": 1})", {R"({"a": 1})"}},
      {"{\"a\": 0.30}{\"b\":\n2} {}", {"{\"a\": 0.30}", "{\"b\":\n2}", "{}"}},
      {"# service\n{\"a\": 1}\n---\n{\"b\": 2}\n---\n", {R"({"a": 1})", R"({"b": 2})"}},
      {"---\n{\"a\": \"\\ud83d\\ude00 --- \"}", {R"({"a": "\ud83d\ude00 --- "})"}},
      {"\xef\xbb\xbf{}", {"{}"}},
      {"a: 1\n---\nb: 2\n---\n---\n# none\n--- # none\n{\"c\": 3}\n",
       {R"({"a":1})", R"({"b":2})", R"({"c": 3})"}},
      {"a: 1\n...\nb: 2\n", {R"({"a":1})", R"({"b":2})"}},
      {"--- !!map {a: [1, b, {}, []], d: {e: }}", {R"({"a":[1,"b",{},[]],"d":{"e":null}})"}},
      {"a: |\n  --- x\n  y\nb: >-\n  c\n  d\n", {R"({"a":"--- x\ny\n","b":"c d"})"}},
      {"{a: 1, b: {\"c\": [x]}}\n--- { # none\n  d: 2}\n", {R"({"a":1,"b":{"c":["x"]}})", R"({"d":2})"}},
      {"a:\r\n  b: 1\r\n---\r\nc: 2\r\n", {R"({"a":{"b":1}})", R"({"c":2})"}},
      {"1: a\ntrue: b\n\"<<\": c\n", {R"({"1":"a","true":"b","<<":"c"})"}},
      {"a: &x {b: &y [1]}\nc: *x\nd: *y\n", {R"({"a":{"b":[1]},"c":{"b":[1]},"d":[1]})"}},
      {"a: \"caf\\u00e9 \\U0001F600\"", {"{\"a\":\"caf\xc3\xa9 \xf0\x9f\x98\x80\"}"}},
  };
  for (const auto& row : rows) {
    const auto documents = documents_of(row.text);
    ASSERT_TRUE(documents) << row.text << ": " << documents.error().front().message;
    EXPECT_EQ(*documents, row.documents) << row.text;
  }
}

TEST(Documents, yaml_values_have_the_types_of_the_core_schema) {
  const std::pair<const char*, const char*> rows[] = {
      {"5", "5"},
      {"-5", "-5"},
      {"+5", "5"},
      {"0", "0"},
      {"-0", "-0"},
      {"0x1F", "31"},
      {"0o17", "15"},
      {"0.30", "0.30"},
      {"-.5", "-0.5"},
      {"1.", "1.0"},
      {"1e3", "1e3"},
      {"+12.50E-2", "12.50E-2"},
      {"'5'", "\"5\""},
      {"\"5\"", "\"5\""},
      {"! 5", "\"5\""},
      {"!!str 5", "\"5\""},
      {"!!str 010", "\"010\""},
      {"!!int 5", "5"},
      {"!!float 5", "5"},
      {"!!bool true", "true"},
      {"true", "true"},
      {"False", "false"},
      {"yes", "\"yes\""},
      {"no", "\"no\""},
      {"on", "\"on\""},
      {"NO", "\"NO\""},
      {"~", "null"},
      {"null", "null"},
      {"", "null"},
      {"''", "\"\""},
      {"'~'", "\"~\""},
      {"1_000", "\"1_000\""},
      {"12:30:45", "\"12:30:45\""},
      {"0b11", "\"0b11\""},
      {"0x", "\"0x\""},
      {"0xg", "\"0xg\""},
      {"1e", "\"1e\""},
      {".", "\".\""},
      {"4GiB", "\"4GiB\""},
      {"30%", "\"30%\""},
      {"2026-11-23", "\"2026-11-23\""},
      {"1.2.3", "\"1.2.3\""},
      {"0.1.2", "\"0.1.2\""},
      {"18446744073709551616", "18446744073709551616"},
  };
  for (const auto& [yaml, json] : rows) {
    const auto documents = documents_of(fmt::format("a: {}", yaml));
    ASSERT_TRUE(documents) << yaml << ": " << documents.error().front().message;
    EXPECT_EQ(documents->front(), fmt::format("{{\"a\":{}}}", json)) << yaml;
  }
}

TEST(Documents, ambiguous_values_are_rejected_with_their_line) {
  const struct {
    std::string_view text;
    const char* message;
  } rows[] = {
      {"", "there is no document"},
      {"# nothing\n---\n", "there is no document"},
      {"a: 1\nb:\n  - c\n  - d: 010\n",
       "line 4: b[1].d: 010 starts with 0, which YAML 1.1 and 1.2 read as different "
       "numbers; write 10 for the number, or '010' for the text"},
      {"a: -007", "write -7 for"},
      {"a: 00.5", "write 0 for"},
      {"a: 0x1FFFFFFFFFFFFFFFF", "line 1: a: 0x1FFFFFFFFFFFFFFFF does not fit in 64 bits"},
      {"a: .inf", "line 1: a: .inf is not supported as a number"},
      {"a: -.INF", "is not supported as a number"},
      {"a: 1e999", "line 1: a: 1e999 is out of range"},
      {"{\"a\": 1e999}", "line 1: the document is not JSON"},
      {"a: .nan", "is not supported as a number"},
      {"a: 1\nb: 2\na: 3\n", "line 3: a: the key occurs twice; keep one of them"},
      {"a: {b: 1, 'b': 2}", "line 1: a.b: the key occurs twice"},
      {"{\"a\": {\"b\": 1,\n\"b\": 2}}", "line 2: a.b: the key occurs twice"},
      {"x: 1\n---\n\n{\"a\":\n}\n", "line 5: the document is not JSON"},
      {"{a: b", "line 1"},
      {"{\"a\": b}", "line 1: the document is not JSON"},
      {"{} x", "line 1: a JSON document must be an object"},
      {"[{}]", "line 1: a JSON document must be an object"},
      {"- a", "line 1: the document is a list"},
      {"a", "line 1: the document is a single value"},
      {"--- a\n", "line 1: the document is a single value"},
      {"a: &x {b: 1}\nc:\n  <<: *x\n", "line 3: c.<<: merge keys are not in YAML 1.2"},
      {"a: !!binary aGk=", "line 1: a: 'aGk=' has the tag 'tag:yaml.org,2002:binary'"},
      {"a: !!int x", "does not match its value"},
      {"a: !ruby/object {}", "line 1: a: the tag '!ruby/object' is unknown"},
      {"a: &x [*x]", "an alias is inside the value that it refers to"},
      {"a: *x", "line 1: a: not YAML: "},
      {"*x : a", "line 1: not YAML: "},
      {"a: &x b\n*x : c", "a key is an alias"},
      {"? [a]\n: b", "a key is an object or a list"},
      {"? \n: b", "a key is an object or a list"},
      {"~: b", "a key is empty"},
      {"a: b: c", "line 1: a: not YAML: illegal map value"},
      {"a:\n\tb: 1", "line 2: "},
      {"%YAML 1.1\n---\na: 1", "line 1: directives ('%') are not supported"},
      {"a: \"\\ud83d\\ude00\"", "line 1: a: not YAML: "},
      {"a: \"\\0\"", "line 1: a: a string contains a NUL character"},
      {"{\"a\": \"\\u0000\"}", "line 1: a: a string contains a NUL character"},
      {"a: 1\nb: \0"sv, "line 2: the byte 0x00 is not valid UTF-8"},
      {"a: 1\n\x04 b: 2"sv, "line 2: the byte 0x04"},
      {"{\"a\": 1}\0{"sv, "the byte 0x00"},
      {"a: \xc3(", "the byte 0xc3"},
      {"a: \xed\xa0\x80", "the byte 0xed"},
  };
  for (const auto& row : rows) {
    const auto documents = documents_of(row.text);
    ASSERT_FALSE(documents) << row.text;
    EXPECT_THAT(documents.error().front().message, HasSubstr(row.message)) << row.text;
  }
}

TEST(Documents, all_errors_are_reported_with_field_and_value) {
  const auto documents = documents_of("a: 010\nb: .inf\na: 3\n---\n{\"c\": 1, \"c\": 2}\n---\nd: [1\n");
  ASSERT_FALSE(documents);
  Texts fields;
  for (const api::FieldError& error : documents.error()) fields.push_back(error.field);
  EXPECT_EQ(fields, (Texts{"a", "b", "a", "c", "d[1]"}));
  EXPECT_EQ(documents.error()[0].value, "010");
  EXPECT_THAT(documents.error()[4].message, testing::StartsWith("line "));
  std::string many;
  for (int i = 0; i < 1000; ++i) many += fmt::format("k{}: 010\n---\n", i);
  EXPECT_EQ(documents_of(many).error().size(), api::max_field_errors);
}

TEST(Documents, copies_made_by_aliases_are_limited) {
  std::string bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c < 'k'; ++c) {
    bomb += fmt::format("{0}: &{0} [", c);
    for (int i = 0; i < 10; ++i) bomb += fmt::format("{}*{}", i == 0 ? "" : ", ", static_cast<char>(c - 1));
    bomb += "]\n";
  }
  const auto documents = documents_of(bomb);
  ASSERT_FALSE(documents);
  EXPECT_THAT(documents.error().front().message, HasSubstr("more than 20000 values and keys"));
  const std::string text(8000, 'x');
  std::string large = fmt::format("a: &a {}\n", text);
  for (int i = 0; i < 200; ++i) large += fmt::format("k{}: *a\n", i);
  EXPECT_THAT(documents_of(large).error().front().message,
              HasSubstr("too large when their aliases are expanded"));
  std::string deep = "a0: &a0 {}\n";
  for (int i = 1; i < 20; ++i) deep += fmt::format("a{0}: &a{0} [*a{1}]\n", i, i - 1);
  EXPECT_THAT(documents_of(deep).error().front().message,
              HasSubstr("line 16: a15[0]: the document is nested deeper"));
}

// A text of 1 MiB could contain 130,000 values, which would take seconds to read.
TEST(Documents, the_number_of_values_and_keys_is_limited) {
  const auto refused = [](const std::string& text) {
    const auto documents = documents_of(text);
    return !documents &&
           documents.error().front().message.find("more than 20000 values and keys") != std::string::npos;
  };
  std::string aliases = "k: &a 1\n", keys = "{", list = "a: [", many;
  for (int i = 0; i < 70'000; ++i) {
    aliases += fmt::format("k{}: *a\n", i);
    keys += fmt::format("{}\"{}\":1", i == 0 ? "" : ",", i);
    list += "1,";
  }
  for (int i = 0; i < 200; ++i) {
    many += "---\n";
    for (int k = 0; k < 60; ++k) many += fmt::format("k{}: 1\n", k);
  }
  EXPECT_TRUE(refused(aliases));
  EXPECT_TRUE(refused(keys + "}"));
  EXPECT_TRUE(refused(list + "1]"));
  EXPECT_TRUE(refused(many)) << "the limit applies to all documents together";
  EXPECT_FALSE(refused(many.substr(0, many.size() / 2)));
}

TEST(Documents, size_depth_and_number_are_limited) {
  EXPECT_FALSE(documents_of(std::string(api::max_document_bytes + 1, ' ')));
  EXPECT_FALSE(documents_of("a: " + std::string(100'000, '[')));
  EXPECT_THAT(documents_of("a: " + std::string(40, '[') + std::string(40, ']')).error().front().message,
              HasSubstr("nested deeper"));
  EXPECT_THAT(documents_of("{\"a\":" + std::string(100'000, '[')).error().front().message,
              HasSubstr("nested deeper"));
  std::string nested = "a:\n";
  for (size_t i = 1; i < 100; ++i) nested += std::string(i, ' ') + "a:\n";
  EXPECT_THAT(documents_of(nested).error().front().message, HasSubstr("line 17: "));
  std::string many;
  for (size_t i = 0; i < max_documents; ++i) many += "{}";
  EXPECT_EQ(documents_of(many)->size(), max_documents);
  std::string wrong;  // Takes minutes if parsing continues after the last error.
  while (wrong.size() < api::max_document_bytes - 16) wrong += "a: 010\n---\n";
  EXPECT_EQ(documents_of(wrong).error().size(), api::max_field_errors);
  EXPECT_THAT(documents_of(many + "{}").error().front().message, HasSubstr("more than 256 documents"));
}

}  // namespace
}  // namespace carve::yaml
