#include "controller/api/idempotency.h"

#include <gmock/gmock.h>

#include <map>

namespace carve::controller {
namespace {

struct AnswersFake final : AnswerJournal {
  std::map<std::pair<std::string, std::string>, KeptAnswer> all;
  bool is_broken = false;
  Outcome<std::optional<KeptAnswer>> find(const std::string& caller, const std::string& key) override {
    if (is_broken) return failure(FailureKind::unavailable, "the disk is full");
    const auto found = all.find({caller, key});
    return found == all.end() ? std::nullopt : std::optional(found->second);
  }
  Outcome<void> write(const KeptAnswer& a) override {
    all[{a.caller, a.key}] = a;
    return {};
  }
};

struct Posted {
  AnswersFake answers;
  int made = 0;
  unsigned status = 201;
  int64_t now_ns = 1000;

  http::Response post(const std::string& key, const std::string& body, const http::Caller& caller,
                      const std::string& path = "/v1/documents", const std::string& method = "POST") {
    http::Request request{.method = method, .path = path, .query = "", .body = body};
    request.headers.add("Idempotency-Key", key);
    return answer_once(request, caller, answers, now_ns, [&] {
      ++made;
      return http::Response{status, "application/json", fmt::format("{}", made), {{"ETag", "\"5\""}}};
    });
  }
};

http::Caller account(const char* name, http::Role role = http::Role::user) {
  return http::Caller::token(name, role);
}
std::string content(const http::Response& r) { return std::get<std::string>(r.content); }

TEST(Idempotency, a_repeated_request_gets_the_first_response) {
  Posted p;
  for (int i = 0; i < 3; ++i) {
    const auto response = p.post("k", "body", account("a"));
    EXPECT_EQ(response.status, 201u);
    EXPECT_EQ(content(response), "1");
    ASSERT_EQ(response.headers.size(), 1u);
    EXPECT_EQ(response.headers[0].value, "\"5\"");
  }
  EXPECT_EQ(content(p.post("other", "body", account("a"))), "2");
}

TEST(Idempotency, a_key_of_another_request_is_rejected) {
  Posted p;
  p.post("k", "body", account("a"));
  for (const auto& [path, body] :
       {std::pair("/v1/documents", "other"), std::pair("/v1/services/a/stop", "body")}) {
    const auto refused = p.post("k", body, account("a"), path);
    EXPECT_EQ(refused.status, 422u);
    EXPECT_THAT(content(refused), testing::HasSubstr("carve:key-reused"));
  }
  EXPECT_EQ(p.made, 1);
}

TEST(Idempotency, a_key_belongs_to_one_caller_with_one_role) {
  Posted p;
  p.post("k", "body", account("a"));
  EXPECT_EQ(content(p.post("k", "body", account("b"))), "2");
  EXPECT_EQ(content(p.post("k", "body", account("a", http::Role::viewer))), "3");
  EXPECT_EQ(content(p.post("k", "other", account("c"))), "4");
}

TEST(Idempotency, a_key_can_be_reused_after_a_day) {
  Posted p;
  p.post("k", "body", account("a"));
  p.now_ns += answer_lifetime_ns - 1;
  EXPECT_EQ(content(p.post("k", "body", account("a"))), "1");
  p.now_ns += 1;
  EXPECT_EQ(content(p.post("k", "other", account("a"))), "2");
}

TEST(Idempotency, a_rejected_request_is_carried_out_when_repeated) {
  Posted p;
  p.status = 409;
  p.post("k", "body", account("a"));
  p.status = 201;
  EXPECT_EQ(p.post("k", "body", account("a")).status, 201u);
  EXPECT_EQ(p.made, 2);
}

TEST(Idempotency, responses_with_tokens_and_of_other_methods_are_not_stored) {
  Posted p;
  for (int i = 0; i < 2; ++i) {
    p.post("k", "", account("a"), "/v1/tokens");
    p.post("k", "", account("a"), "/v1/services/a", "DELETE");
  }
  EXPECT_EQ(p.made, 4);
  EXPECT_TRUE(p.answers.all.empty());
}

TEST(Idempotency, an_invalid_key_is_rejected_and_nothing_is_changed) {
  Posted p;
  for (const std::string& key : {std::string(), std::string(max_idempotency_key_bytes + 1, 'k'),
                                 std::string("a b"), std::string("a\x80")})
    EXPECT_EQ(p.post(key, "", account("a")).status, 400u) << key;
  EXPECT_EQ(p.made, 0);
}

TEST(Idempotency, nothing_is_changed_if_the_journal_cannot_be_used) {
  Posted p;
  p.answers.is_broken = true;
  EXPECT_EQ(p.post("k", "", account("a")).status, 503u);
  EXPECT_EQ(p.made, 0);
}

}  // namespace
}  // namespace carve::controller
