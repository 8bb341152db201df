#include "controller/objects/session_book.h"

#include <gmock/gmock.h>

#include <set>

namespace carve::controller {
namespace {

using testing::IsEmpty;

struct SessionJournalFake final : SessionJournal {
  Outcome<void> write(const Session& session) override {
    if (is_full) return failure(FailureKind::unavailable, "the disk is full");
    stored[session.name] = session;
    return {};
  }
  Outcome<void> remove(const Session& session) override {
    return stored.erase(session.name), Outcome<void>();
  }

  std::map<std::string, Session> stored;
  bool is_full = false;
};

constexpr int64_t t0 = 1'000;
const SignIn research{.role = http::Role::user, .account = "research"};

struct SessionBookTest : testing::Test {
  SessionBook::Begun begun(const SignIn& rights = research, int64_t at_ns = t0) {
    auto out = book.begin(rights, at_ns);
    EXPECT_TRUE(out);
    return std::move(*out);
  }

  SessionJournalFake journal;
  SessionBook book{journal, {}};
};

TEST_F(SessionBookTest, a_session_is_found_only_with_both_secrets) {
  const auto [session, cookie, page_key] = begun();
  EXPECT_EQ(cookie.size(), 43u);
  EXPECT_EQ(page_key.size(), 43u);
  EXPECT_EQ(book.find(cookie, page_key, t0), session);
  EXPECT_FALSE(book.find(cookie, "", t0));
  EXPECT_FALSE(book.find(cookie, cookie, t0));
  EXPECT_FALSE(book.find("", page_key, t0));
  EXPECT_FALSE(book.find(page_key, cookie, t0));
  EXPECT_FALSE(book.find(cookie + "x", page_key, t0));
  const auto other = begun();
  EXPECT_FALSE(book.find(cookie, other.page_key, t0));
}

TEST_F(SessionBookTest, only_hashes_are_stored_and_a_session_outlives_the_controller) {
  const auto [session, cookie, page_key] = begun();
  ASSERT_EQ(journal.stored.size(), 1u);
  const Session& stored = journal.stored.begin()->second;
  for (const std::string& text : {stored.name, stored.cookie_sha256, stored.page_key_sha256}) {
    EXPECT_EQ(text.find(cookie), std::string::npos);
    EXPECT_EQ(text.find(page_key), std::string::npos);
  }
  const SessionBook again(journal, {stored});
  EXPECT_EQ(again.find(cookie, page_key, t0), session);
}

TEST_F(SessionBookTest, a_session_ends_after_its_lifetime_or_with_its_token) {
  const auto [session, cookie, page_key] = begun();
  EXPECT_EQ(session.expires_ns, t0 + session_lifetime_ns);
  EXPECT_TRUE(book.find(cookie, page_key, t0 + session_lifetime_ns - 1));
  EXPECT_FALSE(book.find(cookie, page_key, t0 + session_lifetime_ns));
  EXPECT_FALSE(book.has(session.name, t0 + session_lifetime_ns));
  EXPECT_THAT(book.list(t0 + session_lifetime_ns), IsEmpty());

  SignIn by_token = research;
  by_token.token = "ci", by_token.expires_ns = t0 + 5;
  const auto of_token = begun(by_token);
  EXPECT_EQ(of_token.session.expires_ns, t0 + 5);
  ASSERT_TRUE(book.remove_of_token("other"));
  EXPECT_TRUE(book.has(of_token.session.name, t0));
  const auto code = book.issue_code(by_token, t0), other = book.issue_code(research, t0);
  ASSERT_TRUE(book.remove_of_token("ci"));
  EXPECT_FALSE(book.redeem(*code, t0)) << "a code of the removed token";
  EXPECT_TRUE(book.redeem(*other, t0));
  EXPECT_FALSE(book.has(of_token.session.name, t0));
  EXPECT_TRUE(book.has(session.name, t0));
  // Expired sessions are deleted when the next one begins.
  begun(research, t0 + session_lifetime_ns);
  EXPECT_FALSE(journal.stored.contains(session.name));
}

TEST_F(SessionBookTest, a_code_begins_one_session_within_five_minutes) {
  const auto code = book.issue_code(research, t0);
  ASSERT_TRUE(code);
  EXPECT_FALSE(book.redeem(*code + "x", t0));
  EXPECT_FALSE(book.redeem("", t0));
  const auto rights = book.redeem(*code, t0 + code_lifetime_ns - 1);
  ASSERT_TRUE(rights);
  EXPECT_EQ(rights->account, "research");
  EXPECT_EQ(rights->role, http::Role::user);
  EXPECT_FALSE(book.redeem(*code, t0)) << "a code can be used once";
  const auto late = book.issue_code(research, t0);
  EXPECT_FALSE(book.redeem(*late, t0 + code_lifetime_ns));
}

TEST_F(SessionBookTest, codes_and_sessions_of_one_account_do_not_displace_those_of_another) {
  SignIn other = research;
  other.account = "other";
  const auto kept_code = book.issue_code(other, t0);
  const auto kept = begun(other);
  const auto first_code = book.issue_code(research, t0);
  const auto first = begun();
  std::set<std::string> names;
  for (size_t i = 1; i <= max_sessions_of_account; ++i) {
    book.issue_code(research, t0 + static_cast<int64_t>(i));
    names.insert(begun(research, t0 + static_cast<int64_t>(i)).session.name);
  }
  EXPECT_EQ(names.size(), max_sessions_of_account);
  EXPECT_FALSE(book.redeem(*first_code, t0)) << "the oldest code of the account";
  EXPECT_FALSE(book.has(first.session.name, t0)) << "the oldest session of the account";
  EXPECT_TRUE(book.redeem(*kept_code, t0));
  EXPECT_TRUE(book.has(kept.session.name, t0));
  EXPECT_EQ(book.list(t0).size(), max_sessions_of_account + 1);
}

TEST_F(SessionBookTest, the_number_of_sessions_is_limited) {
  SignIn rights = research;
  for (size_t i = 0; i < max_sessions; ++i) {
    rights.account = fmt::format("a{}", i);
    begun(rights);
  }
  rights.account = "another";
  EXPECT_EQ(book.begin(rights, t0).error().kind, FailureKind::resource_exhausted);
  ASSERT_TRUE(book.remove(book.list(t0).front().name));
  EXPECT_TRUE(book.begin(rights, t0));
}

TEST_F(SessionBookTest, a_session_that_cannot_be_stored_does_not_begin) {
  journal.is_full = true;
  EXPECT_EQ(book.begin(research, t0).error().kind, FailureKind::unavailable);
  EXPECT_THAT(book.list(t0), IsEmpty());
  EXPECT_EQ(book.remove("session-0").error().kind, FailureKind::not_found);
}

}  // namespace
}  // namespace carve::controller
