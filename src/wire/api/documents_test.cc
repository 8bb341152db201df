#include "wire/api/json.h"
#include "wire/api/node.h"
#include "wire/api/slice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "wire/api/json_schema.h"
#include "wire/api/json_value.h"

namespace carve::api {
namespace {

using testing::HasSubstr;

TEST(Documents, are_read_as_they_were_written) {
  Slice slice;
  slice.name = "a";
  slice.parts.push_back(
      {.index = 1, .uuid = "GPU-1", .device_name = "NVIDIA A10", .quota_bytes = UINT64_MAX});
  slice.processes.push_back({.pid = 7, .inner_pid = 1, .command = "caf\xc3\xa9", .attached = true});
  const auto read_back = read<Slice>(write(slice), Reading::strict);
  ASSERT_TRUE(read_back) << read_back.error();
  EXPECT_EQ(write(*read_back), write(slice));
  EXPECT_EQ(read_back->parts[0].quota_bytes, UINT64_MAX);
}

TEST(Documents, keep_an_absent_optional_field_absent) {
  const auto request = read<SliceRequest>(R"({"memory_bytes": 5})", Reading::strict);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->amounts.memory_bytes, 5u);
  EXPECT_FALSE(request->amounts.share_bp);
  EXPECT_EQ(request->amounts.devices, 1u);
  EXPECT_FALSE(request->amounts.isolation);
}

TEST(Documents, have_inlined_fields_as_fields_of_their_own) {
  const SliceRequest request{.name = "a", .amounts = {.memory_bytes = 5, .models = {"NVIDIA A10"}}};
  const std::string text = write(request);
  EXPECT_THAT(text,
              testing::HasSubstr(R"("name":"a","memory_bytes":5,"models":["NVIDIA A10"],"oversubscribe")"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("devices"))) << "the field has its default";
  EXPECT_EQ(read<SliceRequest>(text, Reading::strict)->amounts, request.amounts);
  EXPECT_EQ(read<SliceRequest>(R"({"share_bp": "x"})", Reading::strict).error(),
            "share_bp: \"x\" is not a non-negative whole number");
  EXPECT_FALSE(read<SliceRequest>(R"({"amounts": {}})", Reading::strict));
}

TEST(Documents, are_rejected_with_the_path_and_value_of_the_mistake) {
  const struct {
    const char* text;
    const char* says;
  } rows[] = {
      {R"({"memory_byte": 5})", "memory_byte: unknown field"},
      {R"({"memory_bytes": "4GiB"})", "memory_bytes: \"4GiB\" is not a non-negative whole number"},
      {R"({"memory_bytes": -1})", "memory_bytes: -1 is not a non-negative whole number"},
      {R"({"memory_bytes": 1.5})", "memory_bytes: 1.5 is not"},
      {R"({"share_bp": 4294967296})", "share_bp: 4294967296 is not a number that fits"},
      {R"({"name": 5})", "name: 5 is not a string; write it in quotes"},
      {R"({"name": []})", "name: [] is not a string"},
      {R"({"exclusive": 1})", "exclusive: 1 is not true or false"},
      {R"({"policy": "fixed"})",
       "policy: \"fixed\" is not fixed-share, guaranteed-burst-share or native-burst-share"},
      {R"({"latency_class": 1})", "latency_class: 1 is not a string"},
      {R"({"isolation": ""})", "isolation: \"\" is not none, memory or memory+compute"},
      {R"([])", "document: [] is not an object"},
      {R"({"name": "a")", "not JSON"},
      {"", "not JSON"},
      {"\xff\xfe", "not JSON"},
      {R"({"name": "a"} {})", "not JSON"},
      {R"({"name": "a", "share_bp": 5, "name": "b"})", "name: the key occurs twice; keep one of them"},
      {R"({"labels": {"a": "1", "b": "2", "a": "3"}})", "labels.a: the key occurs twice"},
      {R"({"models": ["a", {"b": 1, "b": 2}]})", "models[1].b: the key occurs twice"},
      {R"({"name": "a\u0000b"})", "name: a string contains a NUL character"},
      {R"({"na\u0000me": "a"})", "na: a key contains a NUL character"},
      {"{\"name\": \"a\xc0\xaf\"}", "not JSON"},
  };
  for (const auto& row : rows) {
    const auto request = read<SliceRequest>(row.text, Reading::strict);
    ASSERT_FALSE(request) << row.text;
    EXPECT_THAT(request.error(), HasSubstr(row.says));
  }
}

TEST(Documents, are_read_by_clients_despite_unknown_fields) {
  EXPECT_TRUE(read<Version>(R"({"version": "9", "colour": "blue"})", Reading::lenient));
}

struct Stated {
  Word<Policy> state = Policy::fixed_share;
};

TEST(Documents, keep_an_unknown_word_of_an_enumeration_that_may_grow) {
  EXPECT_EQ(write(Stated{}), R"({"state":"fixed-share"})");
  for (const char* text : {R"({"state":"later"})", R"({"state":""})", R"({"state":"native-burst-share"})"}) {
    const auto stated = read<Stated>(text, Reading::strict);
    ASSERT_TRUE(stated) << text;
    EXPECT_EQ(write(*stated), text);
  }
  EXPECT_EQ(read<Stated>(R"({"state":5})", Reading::lenient).error(),
            "state: 5 is not a string; write it in quotes");
  EXPECT_EQ(schema<Stated>(), R"({"type":"object","additionalProperties":false,)"
                              R"("properties":{"state":{"type":"string","default":"fixed-share"}}})");
}

TEST(Documents, are_not_cut_off_at_a_nul_character) {
  using namespace std::string_view_literals;
  EXPECT_FALSE(parse("{}\0 garbage"sv));
  EXPECT_FALSE(parse("{\"a\": 1, \0}"sv));
  EXPECT_TRUE(parse(" {} \n"));
  EXPECT_TRUE(parse("7 "));
  EXPECT_FALSE(parse("7x"));
  EXPECT_FALSE(parse("7\0"sv));
}

TEST(Documents, can_keep_the_text_of_a_decimal_number) {
  const auto exact =
      parse(R"({"a": 0.30, "b": 1e2, "c": 18446744073709551616, "d": 7, "e": -7})", Decimals::as_texts);
  ASSERT_TRUE(exact);
  EXPECT_EQ(exact->dump(), R"({"a":"0.30","b":"1e2","c":"18446744073709551616","d":7,"e":-7})");
  EXPECT_EQ(parse("0.30")->dump(), "0.3");
}

TEST(Documents, can_be_read_from_the_beginning_of_a_longer_text) {
  const auto first = parse_leading(R"( {"a": {"b": []}} {"c": 1})");
  ASSERT_TRUE(first);
  EXPECT_EQ(first->length, 17u);
  EXPECT_EQ(first->value.dump(), R"({"a":{"b":[]}})");
  const auto wrong = parse_leading("{\"a\": 1,\n\"a\": 2}");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().field, "a");
  EXPECT_EQ(wrong.error().offset, 12u);
}

TEST(Documents, with_many_keys_are_read_quickly) {
  std::string text = "{";
  for (int i = 0; i < 100'000; ++i) text += fmt::format("\"{}\":1,", i);
  const auto object = parse(text + "\"end\":1}");
  ASSERT_TRUE(object);
  EXPECT_EQ(object->size(), 100'001u);
}

TEST(Documents, that_are_deep_or_random_are_rejected_quickly) {
  EXPECT_FALSE(parse(std::string(100'000, '[')));
  const auto deep = parse(std::string(40, '[') + std::string(40, ']'));
  EXPECT_FALSE(deep);
  std::mt19937 random(1);
  const std::string good = write(SliceRequest{.name = "n", .amounts = {.memory_bytes = 5}});
  for (int i = 0; i < 20'000; ++i) {
    std::string text = good;
    for (unsigned n = random() % 6 + 1; n > 0; --n)
      text[random() % text.size()] = static_cast<char>(random());
    (void)read<SliceRequest>(text, Reading::strict);
  }
}

}  // namespace
}  // namespace carve::api
