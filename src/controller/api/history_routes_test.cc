// The parameters of GET /v1/history, and who may see what.
#include "controller/api/history_routes.h"

#include <gmock/gmock.h>

#include "controller/api/testing/controller_api.h"
#include "controller/history/history_head.h"
#include "core/utc.h"

namespace carve::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t now_ns = 1'800'000'002 * history_second_ns;  // 2027-01-15T08:00:02Z

struct HistoryApi : Api {
  HistoryApi() { views.now = now_ns; }
  HistoryQuery query(const std::string& text, const http::Caller& caller = user(1000)) {
    const auto response = ask(caller, "GET", "/v1/history?" + text);
    EXPECT_EQ(response.status, 200u) << body(response);
    return views.histories.empty() ? HistoryQuery() : std::exchange(views.histories, {}).back();
  }
};

TEST(HistoryRoutes, show_all_metrics_of_the_last_hour_by_default) {
  HistoryApi api;
  const HistoryQuery slice = api.query("object=slice/n1/a");
  EXPECT_EQ(slice.kind, HistoryKind::slice);
  EXPECT_EQ(slice.node, "n1");
  EXPECT_EQ(slice.name, "a");
  EXPECT_EQ(slice.metrics.size(), slice_metrics);
  EXPECT_EQ(slice.step_ns, 5 * history_second_ns);
  EXPECT_EQ(text_utc(slice.from_ns), "2027-01-15T07:00:00Z") << "a whole step";
  EXPECT_EQ(slice.to_ns, now_ns);
  EXPECT_EQ(api.query("object=slice/a").node, "");
  const HistoryQuery device = api.query("object=device/n1/3&metric=power_milliwatts,used_bytes");
  EXPECT_EQ(device.kind, HistoryKind::device);
  EXPECT_EQ(device.index, 3u);
  EXPECT_THAT(device.metrics, ElementsAre(3, 0));
}

TEST(HistoryRoutes, choose_a_step_with_at_most_720_values) {
  HistoryApi api;
  const auto seconds = [&](const std::string& from) {
    return api.query("object=slice/a&from=" + from).step_ns / history_second_ns;
  };
  EXPECT_EQ(seconds("2027-01-15T07:30:00Z"), 5);
  EXPECT_EQ(seconds("2027-01-15T06:30:00Z"), 10);
  EXPECT_EQ(seconds("2027-01-14T20:30:00Z"), 60);
  EXPECT_EQ(seconds("2027-01-14T08:00:00Z"), 300);
  EXPECT_EQ(seconds("2027-01-01"), 900) << "a week at most";
  EXPECT_EQ(text_utc(api.query("object=slice/a&from=2027-01-01").from_ns), "2027-01-08T08:00:00Z");
  EXPECT_EQ(api.query("object=slice/a&step=3600").step_ns, 3600 * history_second_ns);
}

TEST(HistoryRoutes, pass_the_callers_rights_on) {
  HistoryApi api;
  const auto own = api.query("object=slice/a").may_see;
  EXPECT_TRUE(own(1000, ""));
  EXPECT_FALSE(own(1001, "other"));
  const auto operators_query = api.query("object=slice/a", user(0));
  EXPECT_TRUE(operators_query.may_see(1001, "other"));
  EXPECT_EQ(api.ask(http::Caller(), "GET", "/v1/history?object=slice/a").status, 401u);
}

TEST(HistoryRoutes, reject_wrong_parameters_with_the_allowed_values) {
  const struct {
    const char *query, *message;
  } rows[] = {
      {"", "object '': must be slice/NAME, slice/NODE/NAME or device/NODE/INDEX"},
      {"object=slice/", "object 'slice/': must be"},
      {"object=slice/a/b/c", "object 'slice/a/b/c': must be"},
      {"object=device/n1", "must be slice/NAME"},
      {"object=device/n1/-1", "must be slice/NAME"},
      {"object=device//1", "must be slice/NAME"},
      {"object=device/n1/99999999999", "must be slice/NAME"},
      {"object=slice/a&metric=power_milliwatts",
       "metric 'power_milliwatts': a slice must be one of charged_bytes, "},
      {"object=device/a/0&metric=", "OK"},
      {"object=slice/a&metric=used_bytes,used_bytes", "metric 'used_bytes': given twice"},
      {"object=slice/a&metric=used_bytes,", "metric '': a slice"},
      {"object=slice/a&from=yesterday", "from 'yesterday': must be a date or a time in UTC"},
      {"object=slice/a&from=2027-02-01", "'from' (2027-02-01T00:00:00Z) must be before 'to'"},
      {"object=slice/a&from=2026-12-01&to=2026-12-02", "the history goes back 7 days"},
      {"object=slice/a&step=0", "step '0': must be 5, 10, 15, 20 or 30 seconds, or a multiple of 60"},
      {"object=slice/a&step=7", "step '7': must be"},
      {"object=slice/a&step=90", "step '90': must be"},
      {"object=slice/a&step=1h", "step '1h': must be"},
      {"object=slice/a&from=2027-01-10&step=5", "at most 11000 are allowed, so use a longer step"},
      {"object=slice/a&colour=red", "colour: no such parameter; use metric, object, from, to, step"},
  };
  for (const auto& row : rows) {
    HistoryApi api;
    const auto response = api.ask(user(1000), "GET", fmt::format("/v1/history?{}", row.query));
    if (std::string_view(row.message) == "OK") {
      EXPECT_EQ(response.status, 200u);
      continue;
    }
    EXPECT_EQ(response.status, 400u) << row.query;
    EXPECT_THAT(body(response), HasSubstr(row.message)) << row.query;
  }
}

}  // namespace
}  // namespace carve::controller
