#include "kubernetes/api/access/reader_check.h"

#include <gmock/gmock.h>

#include "kubernetes/api/testing/simulated_api_client.h"

namespace carve::kubernetes {
namespace {

struct Reader final : http::LaterAnswer {
  unsigned status = 0;
  std::string body;
  std::shared_ptr<void> subscription;

  void answer(http::Response response) override {
    status = response.status;
    body = std::get<std::string>(response.content);
  }
};

struct ReadingScenario {
  ReaderCheck::Source source = [](const ReaderCheck::Done& done) { done("series"); };
  VirtualTime time;
  ApiServerFake server;
  SimulatedApiClient client{time, server, 1};
  ReaderCheck check{client};

  ReadingScenario() {
    server.token_users["good"] = {{"username", "system:serviceaccount:monitoring:prometheus"},
                                  {"groups", {"system:serviceaccounts"}}};
    server.token_users["other"] = {{"username", "u"}};
    server.is_allowed = [](const nlohmann::json& spec) {
      return spec["user"] == "system:serviceaccount:monitoring:prometheus" &&
             spec["nonResourceAttributes"]["path"] == "/metrics";
    };
  }
  Reader read(const std::string& token) {
    http::Request request{.method = "GET", .path = "/metrics", .query = "", .body = ""};
    if (!token.empty()) request.headers.add("Authorization", "Bearer " + token);
    Reader out;
    http::Response response = check.answer(request, source);
    if (auto* later = std::get_if<http::LaterContent>(&response.content)) {
      out.subscription = later->begin(out);
      time.run_for(5 * second_ns);
      out.subscription.reset();
    } else {
      out.answer(std::move(response));
    }
    return out;
  }
};

TEST(ReaderCheck, an_account_that_may_get_metrics_reads_them) {
  ReadingScenario s;
  EXPECT_EQ(s.read("good").body, "series");
  EXPECT_EQ(s.read("").status, 401u);
  EXPECT_EQ(s.read("unknown").status, 401u);
  EXPECT_EQ(s.read("other").status, 403u);
}

TEST(ReaderCheck, an_answer_is_kept_for_a_minute) {
  ReadingScenario s;
  s.read("good");
  const size_t asked = s.server.requests().size();
  EXPECT_EQ(s.read("good").body, "series");
  EXPECT_EQ(s.server.requests().size(), asked);
  s.time.run_for(61 * second_ns);
  EXPECT_EQ(s.read("good").body, "series");
  EXPECT_EQ(s.server.requests().size(), 2 * asked);
}

TEST(ReaderCheck, without_an_api_server_no_reader_is_known) {
  ReadingScenario s;
  s.client.set_connected(false);
  EXPECT_EQ(s.read("good").status, 503u);
  s.client.set_connected(true);
  EXPECT_EQ(s.read("good").status, 200u) << "a missing answer is not kept";
}

TEST(ReaderCheck, a_text_may_come_later) {
  ReadingScenario s;
  ReaderCheck::Done done;
  size_t asked = 0;
  s.source = [&](ReaderCheck::Done given) {
    done = std::move(given);
    ++asked;
    s.time.at(s.time.now() + second_ns, [&] { done("late series"); });
  };
  EXPECT_EQ(s.read("good").body, "late series");
  EXPECT_EQ(s.read("good").body, "late series") << "whose reader is known";
  EXPECT_EQ(s.read("other").status, 403u);
  EXPECT_EQ(asked, 2u) << "for readers that may";
  done("a text whose reader is gone");
}

}  // namespace
}  // namespace carve::kubernetes
