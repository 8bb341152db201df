#include "core/words.h"

#include <gtest/gtest.h>

#include "core/commitment.h"
#include "core/enforcement.h"
#include "core/reachability.h"
#include "core/slice.h"
#include "core/word.h"

namespace carve {
namespace {

template <class E>
void each_word_is_parsed_and_no_other() {
  for (size_t i = 0; i < std::size(Words<E>::words); ++i) {
    EXPECT_EQ(parse<E>(Words<E>::words[i]), static_cast<E>(i));
    EXPECT_EQ(text(static_cast<E>(i)), Words<E>::words[i]);
  }
  for (const std::string_view word : {"", "x", "Batch", "fixed-share ", "fixed"}) {
    EXPECT_FALSE(parse<E>(word)) << word;
    const auto refused = parse_named<E>(word);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message,
              fmt::format("'{}' is not a known {}; use {}", word, Words<E>::kind, choice(Words<E>::words)));
  }
}

TEST(Words, of_each_enumeration_and_no_others_can_be_parsed) {
  each_word_is_parsed_and_no_other<Policy>();
  each_word_is_parsed_and_no_other<LatencyClass>();
  each_word_is_parsed_and_no_other<Isolation>();
  each_word_is_parsed_and_no_other<Strategy>();
  each_word_is_parsed_and_no_other<Commitment>();
  each_word_is_parsed_and_no_other<EnforcementLevel>();
  each_word_is_parsed_and_no_other<GuardChoice>();
  each_word_is_parsed_and_no_other<SliceState>();
  each_word_is_parsed_and_no_other<HealthState>();
  each_word_is_parsed_and_no_other<CheckStatus>();
  each_word_is_parsed_and_no_other<Reachability>();
}

TEST(Words, are_listed_as_alternatives_in_messages) {
  EXPECT_EQ(choice({}), "");
  EXPECT_EQ(choice(Words<LatencyClass>::words), "batch or latency");
  EXPECT_EQ(choice(Words<Isolation>::words), "none, memory or memory+compute");
}

TEST(Word, keeps_an_unknown_word_but_has_no_value_for_it) {
  const auto known = Word<Policy>::from("fixed-share"), unknown = Word<Policy>::from("later");
  EXPECT_EQ(known.value(), Policy::fixed_share);
  EXPECT_EQ(known, Policy::fixed_share);
  EXPECT_NE(known, unknown);
  EXPECT_EQ(text(known), "fixed-share");
  EXPECT_EQ(unknown.value(), std::nullopt);
  EXPECT_EQ(text(unknown), "later");
  EXPECT_FALSE(unknown.empty());
  for (size_t i = 0; i < std::size(Words<Policy>::words); ++i) EXPECT_NE(unknown, static_cast<Policy>(i));
}

TEST(Word, is_empty_if_the_text_is_empty) {
  const Word<Policy> absent;
  EXPECT_TRUE(absent.empty());
  EXPECT_EQ(absent, Word<Policy>::from(""));
  EXPECT_EQ(text(absent), "");
  EXPECT_NE(absent, Policy::fixed_share);
}

}  // namespace
}  // namespace carve
