#include "controller/api/label_selector.h"

#include <gmock/gmock.h>

namespace carve::controller {
namespace {

using Labels = std::map<std::string, std::string>;

TEST(LabelSelector, selects_objects_as_kubernetes_does) {
  const Labels labels = {{"app", "web"}, {"carve.dev/zone", "a"}, {"empty", ""}};
  const std::pair<const char*, bool> table[] = {
      {"", true},
      {"  ", true},
      {"app=web", true},
      {"app==web", true},
      {" app = web ", true},
      {"app=cache", false},
      {"tier=web", false},
      {"app!=web", false},
      {"app!=cache", true},
      {"tier!=cache", true},
      {"app in (web, cache)", true},
      {"app in (cache)", false},
      {"app notin (cache,db)", true},
      {"app notin (web)", false},
      {"tier notin (web)", true},
      {"app", true},
      {"tier", false},
      {"!app", false},
      {"! tier", true},
      {"empty=", true},
      {"empty in ()", true},
      {"empty in (,x)", true},
      {"empty!=", false},
      {"in=web", false},
      {"notin", false},
      {"carve.dev/zone=a,app in (web),!tier", true},
      {"carve.dev/zone=a,app in (web),tier", false},
      {"app=web,app!=web", false},
  };
  for (const auto& [text, expected] : table) {
    const auto selector = parse_label_selector(text);
    ASSERT_TRUE(selector) << text << ": " << selector.error().message;
    EXPECT_EQ(selects(*selector, labels), expected) << text;
  }
}

TEST(LabelSelector, rejects_an_invalid_text_with_the_position) {
  for (const char* text :
       {",",         "a,",      ",a",  "a=b,,c",     "a=b c", "a b",     "a in b",     "a in (b", "a in b)",
        "a in (b))", "=b",      "!=b", "!",          "!a=b",  "a notin", "a=b=c",      "a>1",     "a<1",
        "a~b",       "a=\"b\"", "(a)", "a in (b c)", "a\n=b", "a;b",     "\xc3\xa4=b", "a=b/c"}) {
    const auto selector = parse_label_selector(text);
    ASSERT_FALSE(selector) << text;
    EXPECT_EQ(selector.error().kind, FailureKind::invalid_argument);
    EXPECT_THAT(selector.error().message, testing::HasSubstr("labelSelector"));
  }
}

TEST(LabelSelector, does_not_accept_a_nul_character_in_a_word) {
  EXPECT_FALSE(parse_label_selector(std::string_view("a\0b", 3)));
}

TEST(LabelSelector, rejects_excessive_sizes) {
  EXPECT_FALSE(parse_label_selector(std::string(max_selector_bytes + 1, 'a')));
  EXPECT_FALSE(parse_label_selector(std::string(max_selector_label_bytes + 1, 'a')));
  EXPECT_FALSE(parse_label_selector("a=" + std::string(max_selector_label_bytes + 1, 'b')));
  EXPECT_TRUE(parse_label_selector("a=" + std::string(max_selector_label_bytes, 'b')));
  std::string many = "a";
  for (size_t i = 1; i < max_selector_requirements; ++i) many += ",a";
  EXPECT_TRUE(parse_label_selector(many));
  EXPECT_FALSE(parse_label_selector(many + ",a"));
}

}  // namespace
}  // namespace carve::controller
