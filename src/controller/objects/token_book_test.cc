#include "controller/objects/token_book.h"

#include <gmock/gmock.h>

namespace carve::controller {
namespace {

struct TokenJournalFake final : TokenJournal {
  Outcome<void> write(const Token& token) override { return written.push_back(token), Outcome<void>(); }
  Outcome<void> remove(const Token&) override { return {}; }
  std::vector<Token> written;
};

constexpr int64_t now = 1'000;

TEST(TokenBook, returns_a_token_once_and_identifies_its_caller) {
  TokenJournalFake journal;
  TokenBook book(journal, {});
  const auto whole = book.add({.name = "ci", .role = http::Role::user, .account = "research"});
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->size(), token_prefix.size() + 43);
  EXPECT_TRUE(whole->starts_with("carve_"));
  EXPECT_EQ(journal.written.at(0).sha256.size(), 64u);
  EXPECT_EQ(journal.written.at(0).sha256.find(whole->substr(token_prefix.size())), std::string::npos);
  const auto caller = book.caller(*whole, now);
  ASSERT_TRUE(caller);
  EXPECT_EQ(*caller->token_account(), "research");
  EXPECT_TRUE(caller->may_create());
  EXPECT_FALSE(caller->may_operate());
  // The next controller reads the stored hash.
  const TokenBook again(journal, journal.written);
  EXPECT_TRUE(again.caller(*whole, now));
}

TEST(TokenBook, does_not_identify_a_caller_by_an_unknown_expired_or_removed_token) {
  TokenJournalFake journal;
  TokenBook book(journal, {});
  const auto whole =
      book.add({.name = "ci", .role = http::Role::viewer, .account = "a", .expires_ns = now + 1});
  EXPECT_TRUE(book.caller(*whole, now));
  EXPECT_FALSE(book.caller(*whole, now + 1));
  EXPECT_FALSE(book.caller(*whole + "x", now));
  EXPECT_FALSE(book.caller("", now));
  ASSERT_TRUE(book.remove("ci"));
  EXPECT_FALSE(book.caller(*whole, now));
  EXPECT_EQ(book.remove("ci").error().kind, FailureKind::not_found);
}

TEST(TokenBook, gives_viewers_no_right_to_create_and_makes_unique_tokens) {
  TokenJournalFake journal;
  TokenBook book(journal, {});
  const auto a = book.add({.name = "a", .role = http::Role::viewer, .account = "x"});
  const auto b = book.add({.name = "b", .role = http::Role::operate, .account = "x"});
  EXPECT_NE(*a, *b);
  EXPECT_FALSE(book.caller(*a, now)->may_create());
  EXPECT_TRUE(book.caller(*b, now)->may_operate());
  EXPECT_EQ(book.add({.name = "a"}).error().kind, FailureKind::already_exists);
}

TEST(WrongTokens, block_an_address_after_ten_in_a_minute_and_no_other_address) {
  WrongTokens wrong;
  for (unsigned i = 0; i < WrongTokens::max_attempts; ++i) {
    EXPECT_TRUE(wrong.may_try("10.0.0.1", i));
    wrong.failed("10.0.0.1", i);
  }
  EXPECT_FALSE(wrong.may_try("10.0.0.1", 20));
  EXPECT_TRUE(wrong.may_try("10.0.0.2", 20));
  EXPECT_TRUE(wrong.may_try("10.0.0.1", WrongTokens::window_ns));
}

}  // namespace
}  // namespace carve::controller
