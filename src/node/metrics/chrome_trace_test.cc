#include "node/metrics/chrome_trace.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

namespace carve::node {
namespace {

using nlohmann::json;
using testing::UnorderedElementsAre;

const Uuid device{{1}}, other{{2}};
const TraceNames names{{{device, 0, "NVIDIA A10"}, {other, 1, "NVIDIA \"T4\""}}, {{7, "a"}, {8, "b\n\"x"}}};

json traced(std::vector<TraceSpan> spans, int64_t begin_ns = 1'000'000) {
  return json::parse(chrome_trace(spans, names, begin_ns))["traceEvents"];
}

std::vector<json> of(const json& events, const char* phase) {
  std::vector<json> out;
  for (const json& e : events)
    if (e["ph"] == phase) out.push_back(e);
  return out;
}

TEST(ChromeTrace, puts_a_lease_on_its_slices_track_at_its_time) {
  const auto spans = of(traced({{device, 7, SpanKind::lease, 1'002'500, 3'002'750}}), "X");
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0], (json{{"ph", "X"},
                            {"name", "lease"},
                            {"cat", "lease"},
                            {"pid", 0},
                            {"tid", 7},
                            {"ts", 2.5},
                            {"dur", 2000.25}}));
}

TEST(ChromeTrace, makes_devices_processes_and_slices_tracks_and_names_each_once) {
  const json events = traced({{device, 7, SpanKind::lease, 1'000'000, 2'000'000},
                              {device, 7, SpanKind::wait, 2'000'000, 3'000'000},
                              {other, 8, SpanKind::drain, 1'000'000, 2'000'000},
                              {device, 7, SpanKind::switching, 1'000'000, 1'100'000}});
  std::vector<std::string> said;
  for (const json& e : of(events, "M"))
    if (e["name"] == "process_name" || e["name"] == "thread_name")
      said.push_back(
          fmt::format("{} {} {}", e["pid"].dump(), e["tid"].dump(), e["args"]["name"].get<std::string>()));
  EXPECT_THAT(said, UnorderedElementsAre("0 0 device 0: NVIDIA A10", "1 0 device 1: NVIDIA \"T4\"", "0 7 a",
                                         "1 8 b\n\"x", "0 0 switches between clients"));
  const auto spans = of(events, "X");
  const auto change = std::ranges::find(spans, 0, [](const json& e) { return e["tid"].get<int>(); });
  ASSERT_NE(change, spans.end());
  EXPECT_EQ((*change)["name"], "to a");
}

TEST(ChromeTrace, leaves_out_slices_that_the_caller_may_not_see_and_cuts_earlier_beginnings) {
  const auto spans = of(traced({{device, 99, SpanKind::lease, 1'000'000, 2'000'000},
                                {Uuid{{9}}, 7, SpanKind::lease, 1'000'000, 2'000'000},
                                {device, 7, SpanKind::wait, 0, 500'000},
                                {device, 7, SpanKind::wait, 0, 1'400'000}}),
                        "X");
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0]["ts"], 0.0);
  EXPECT_EQ(spans[0]["dur"], 400.0);
}

TEST(ChromeTrace, puts_spans_of_one_track_inside_or_after_each_other) {
  const auto spans =
      of(traced({{device, 7, SpanKind::drain, 1'000'000, 2'000'000},
                 {device, 7, SpanKind::wait, 1'500'000, 3'000'000},       // Cut, so that it begins at 2.
                 {device, 8, SpanKind::lease, 1'600'000, 4'000'000},      // Another track.
                 {device, 7, SpanKind::overrun, 2'500'000, 2'600'000}}),  // Inside.
         "X");
  ASSERT_EQ(spans.size(), 4u);
  EXPECT_EQ(spans[1]["ts"], 600.0);
  EXPECT_EQ(spans[2]["ts"], 1000.0);
  EXPECT_EQ(spans[2]["dur"], 1000.0);
  EXPECT_EQ(spans[3]["ts"], 1500.0);
}

TEST(ChromeTrace, draws_spans_that_cross_in_any_way) {
  std::mt19937 random(7);
  for (int history = 0; history < 300; ++history) {
    std::vector<TraceSpan> all;
    for (int i = 0; i < 12; ++i) {
      const auto from = static_cast<int64_t>(1000 + random() % 40),
                 length = static_cast<int64_t>(1 + random() % 20);
      all.push_back({device, 7 + random() % 2, static_cast<SpanKind>(random() % 4), from * 1000,
                     (from + length) * 1000});
    }
    std::map<int, std::vector<double>> ends;
    std::map<int, double> latest;
    for (const json& e : of(traced(all), "X")) {
      std::vector<double>& inside = ends[e["tid"]];
      const double from = e["ts"], end = from + e["dur"].get<double>();
      ASSERT_GE(from, latest[e["tid"]]);
      latest[e["tid"]] = from;
      while (!inside.empty() && inside.back() <= from) inside.pop_back();
      ASSERT_TRUE(inside.empty() || end <= inside.back()) << history;
      inside.push_back(end);
    }
  }
}

TEST(ChromeTrace, is_valid_without_spans) {
  EXPECT_EQ(json::parse(chrome_trace({}, {}, 0))["traceEvents"].size(), 0u);
}

}  // namespace
}  // namespace carve::node
