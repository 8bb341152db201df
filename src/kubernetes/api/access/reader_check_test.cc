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
  ReaderCheck::Source source = [](const ReaderCheck::Done& done) {
    done({.content = std::string("series")});
  };
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
  Reader read(const std::string& token, const std::string& path = "/metrics",
              const std::string& audience = "") {
    http::Request request{.method = "GET", .path = path, .query = "", .body = ""};
    if (!token.empty()) request.headers.add("Authorization", "Bearer " + token);
    Reader out;
    http::Response response = check.answer(request, source, audience);
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

TEST(ReaderCheck, lets_an_account_that_may_get_metrics_read_them) {
  ReadingScenario s;
  EXPECT_EQ(s.read("good").body, "series");
  EXPECT_EQ(s.read("").status, 401u);
  EXPECT_EQ(s.read("unknown").status, 401u);
  EXPECT_EQ(s.read("other").status, 403u);
}

TEST(ReaderCheck, the_permission_to_read_one_path_is_none_for_another) {
  ReadingScenario s;
  EXPECT_EQ(s.read("good").status, 200u);
  EXPECT_EQ(s.read("good", "/v1/usage").status, 403u) << "the cached result is that of /metrics";
  EXPECT_EQ(s.read("good", "/v1/usage").body, "the account is not allowed to get /v1/usage\n");
}

// A token that is sent to a port without a known certificate must be useless everywhere else.
TEST(ReaderCheck, accepts_only_tokens_that_were_issued_for_the_requested_audience) {
  ReadingScenario s;
  s.server.token_users["bound"] = s.server.token_users["good"];
  s.server.token_audiences["bound"] = "carve.dev/usage/n1";
  EXPECT_EQ(s.read("bound", "/metrics", "carve.dev/usage/n1").body, "series");
  EXPECT_EQ(s.read("bound", "/metrics", "carve.dev/usage/n2").status, 401u) << "a token of another node";
  EXPECT_EQ(s.read("bound").status, 401u) << "not valid for the API server";
  EXPECT_EQ(s.read("good", "/metrics", "carve.dev/usage/n1").status, 401u) << "a token of the API server";
  EXPECT_EQ(s.read("good").body, "series");
}

TEST(ReaderCheck, caches_a_result_for_a_minute) {
  ReadingScenario s;
  s.read("good");
  const size_t asked = s.server.requests().size();
  EXPECT_EQ(s.read("good").body, "series");
  EXPECT_EQ(s.server.requests().size(), asked);
  s.time.run_for(61 * second_ns);
  EXPECT_EQ(s.read("good").body, "series");
  EXPECT_EQ(s.server.requests().size(), 2 * asked);
}

TEST(ReaderCheck, responds_with_503_when_the_api_server_is_down) {
  ReadingScenario s;
  s.client.set_connected(false);
  EXPECT_EQ(s.read("good").status, 503u);
  s.client.set_connected(true);
  EXPECT_EQ(s.read("good").status, 200u) << "a failed review is not cached";
}

TEST(ReaderCheck, sends_a_text_that_becomes_available_later) {
  ReadingScenario s;
  ReaderCheck::Done done;
  size_t asked = 0;
  s.source = [&](ReaderCheck::Done given) {
    done = std::move(given);
    ++asked;
    s.time.at(s.time.now() + second_ns, [&] { done({.content = std::string("late series")}); });
  };
  EXPECT_EQ(s.read("good").body, "late series");
  EXPECT_EQ(s.read("good").body, "late series") << "the reader's result is cached";
  EXPECT_EQ(s.read("other").status, 403u);
  EXPECT_EQ(asked, 2u) << "not called for readers without access";
  done({.content = std::string("the reader has disconnected")});
}

}  // namespace
}  // namespace carve::kubernetes
