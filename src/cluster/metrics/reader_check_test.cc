#include "cluster/metrics/reader_check.h"

#include <gmock/gmock.h>

#include "cluster/metrics/coordinator_metrics.h"
#include "kube/testing/simulated_api_client.h"

namespace carve::cluster {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Reader final : http::LaterAnswer {
  unsigned status = 0;
  std::string body;
  std::shared_ptr<void> subscription;

  void answer(http::Response response) override {
    status = response.status;
    body = std::get<std::string>(response.content);
  }
};

struct MetricsScenario {
  kube::VirtualTime time;
  kube::ApiServerFake server;
  kube::SimulatedApiClient client{time, server, 1};
  ReaderCheck check{client};

  MetricsScenario() {
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
    http::Response response = check.answer(request, [] { return std::string("series"); });
    if (auto* later = std::get_if<http::LaterContent>(&response.content)) {
      out.subscription = later->begin(out);
      time.run_for(5 * kube::second_ns);
      out.subscription.reset();
    } else {
      out.answer(std::move(response));
    }
    return out;
  }
};

TEST(ReaderCheck, an_account_that_may_get_metrics_reads_them) {
  MetricsScenario s;
  EXPECT_EQ(s.read("good").body, "series");
  EXPECT_EQ(s.read("").status, 401u);
  EXPECT_EQ(s.read("unknown").status, 401u);
  EXPECT_EQ(s.read("other").status, 403u);
}

TEST(ReaderCheck, an_answer_is_kept_for_a_minute) {
  MetricsScenario s;
  s.read("good");
  const size_t asked = s.server.requests().size();
  EXPECT_EQ(s.read("good").body, "series");
  EXPECT_EQ(s.server.requests().size(), asked);
  s.time.run_for(61 * kube::second_ns);
  EXPECT_EQ(s.read("good").body, "series");
  EXPECT_EQ(s.server.requests().size(), 2 * asked);
}

TEST(ReaderCheck, without_an_api_server_no_reader_is_known) {
  MetricsScenario s;
  s.client.set_connected(false);
  EXPECT_EQ(s.read("good").status, 503u);
  s.client.set_connected(true);
  EXPECT_EQ(s.read("good").status, 200u) << "a missing answer is not kept";
}

TEST(CoordinatorMetrics, series_have_their_labels) {
  CoordinatorFigures figures{.version = "1", .is_active = true};
  figures.verbs["filter"] = {.answers = 2, .took_ns = 1'500'000'000};
  figures.webhook[{"ack", "allowed"}] = 3;
  figures.pending["gpuMemoryUnit"] = true;
  const std::string text = metrics_text(figures);
  EXPECT_THAT(text, HasSubstr("carve_coordinator_active 1\n"));
  EXPECT_THAT(text, HasSubstr("carve_extender_seconds_sum{verb=\"filter\"} 1.500000000\n"));
  EXPECT_THAT(text, HasSubstr("carve_webhook_total{dialect=\"ack\",result=\"allowed\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("carve_setting_pending{setting=\"gpuMemoryUnit\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("carve_binds_total"))) << "a family without samples is left out";
}

}  // namespace
}  // namespace carve::cluster
