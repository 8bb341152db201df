#include "wire/api/exposition.h"

#include <gmock/gmock.h>

#include <random>

namespace carve::api {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr MetricFamily bytes{"carve_a_bytes",           MetricType::gauge, "bytes", {"slice", "device"}, 0,
                             "How\nmuch, by \\ and \"."};
constexpr MetricFamily unused{"carve_unused", MetricType::gauge, "", {}, 0, "Nothing."};
constexpr MetricFamily seconds{"carve_b_seconds_total", MetricType::counter, "seconds", {}, 0, "Time."};
constexpr MetricFamily foreign{"DCGM_X", MetricType::counter, "", {}, 0, "Energy (in mJ)."};
constexpr MetricFamily labelled{"m", MetricType::gauge, "", {"l"}, 0, "h"};
constexpr MetricFamily waits{"carve_wait_seconds", MetricType::histogram, "seconds", {"queue"}, 0, "Waits."};
constexpr MetricFamily calls{"carve_call_seconds", MetricType::summary, "seconds", {"queue"}, 0, "Calls."};

std::string text_in(MetricsFormat format, const auto& write) {
  Exposition out(format);
  write(out);
  return std::move(out).text();
}

void write_some(Exposition& e) {
  e.family(bytes);
  e.sample({"x", "0"}, "1");
  e.sample({"y", ""}, "2");
  e.family(unused);
  e.family(seconds);
  e.sample(seconds_of(1));
  e.family(foreign);
  e.sample("7");
}

TEST(Exposition, announces_a_family_once_and_only_if_it_has_samples) {
  EXPECT_EQ(text_in(MetricsFormat::prometheus, write_some),
            "# HELP carve_a_bytes How\\nmuch, by \\\\ and \".\n# TYPE carve_a_bytes gauge\n"
            "carve_a_bytes{slice=\"x\",device=\"0\"} 1\ncarve_a_bytes{slice=\"y\"} 2\n"
            "# HELP carve_b_seconds_total Time.\n# TYPE carve_b_seconds_total counter\n"
            "carve_b_seconds_total 0.000000001\n"
            "# HELP DCGM_X Energy (in mJ).\n# TYPE DCGM_X counter\nDCGM_X 7\n");
}

TEST(Exposition, writes_openmetrics_with_units_and_an_end) {
  EXPECT_EQ(text_in(MetricsFormat::openmetrics, write_some),
            "# HELP carve_a_bytes How\\nmuch, by \\\\ and \\\".\n# TYPE carve_a_bytes gauge\n"
            "# UNIT carve_a_bytes bytes\n"
            "carve_a_bytes{slice=\"x\",device=\"0\"} 1\ncarve_a_bytes{slice=\"y\"} 2\n"
            "# HELP carve_b_seconds Time.\n# TYPE carve_b_seconds counter\n# UNIT carve_b_seconds seconds\n"
            "carve_b_seconds_total 0.000000001\n"
            "# HELP DCGM_X Energy (in mJ).\n# TYPE DCGM_X unknown\nDCGM_X 7\n"
            "# EOF\n");
}

TEST(Exposition, writes_histograms_with_cumulative_buckets) {
  static constexpr uint64_t bounds[] = {5, 250, 1000};
  Histogram histogram(bounds);
  for (const uint64_t ms : {5, 6, 250, 251, 1'500}) histogram.add(ms);
  const std::string queue[] = {"q"};
  const auto text = text_in(MetricsFormat::openmetrics, [&](Exposition& e) {
    e.family(waits);
    e.sample(LabelText(waits.labels, queue), histogram);
  });
  EXPECT_THAT(text, HasSubstr("carve_wait_seconds_bucket{queue=\"q\",le=\"0.005\"} 1\n"
                              "carve_wait_seconds_bucket{queue=\"q\",le=\"0.25\"} 3\n"
                              "carve_wait_seconds_bucket{queue=\"q\",le=\"1.0\"} 4\n"
                              "carve_wait_seconds_bucket{queue=\"q\",le=\"+Inf\"} 5\n"
                              "carve_wait_seconds_count{queue=\"q\"} 5\n"
                              "carve_wait_seconds_sum{queue=\"q\"} 2.012000000\n"));
}

TEST(Exposition, writes_summaries) {
  const std::string queue[] = {"q"};
  EXPECT_THAT(text_in(MetricsFormat::prometheus,
                      [&](Exposition& e) {
                        e.family(calls);
                        e.sample(LabelText(calls.labels, queue), 3, "1.5");
                      }),
              HasSubstr("# TYPE carve_call_seconds summary\ncarve_call_seconds_count{queue=\"q\"} 3\n"
                        "carve_call_seconds_sum{queue=\"q\"} 1.5\n"));
}

TEST(Exposition, escapes_label_values) {
  const struct {
    const char* value;
    const char* written;
  } rows[] = {
      {"a\"} 1\nevil 2", R"(m{l="a\"} 1\nevil 2"} 0)"},
      {"back\\slash", R"(m{l="back\\slash"} 0)"},
      {"\\\"", R"(m{l="\\\""} 0)"},
      {"", "m 0"},
      {"caf\xc3\xa9", "m{l=\"caf\xc3\xa9\"} 0"},
  };
  for (const auto& row : rows)
    EXPECT_EQ(text_in(MetricsFormat::prometheus,
                      [&](Exposition& e) {
                        e.family(labelled);
                        e.sample({row.value}, "0");
                      }),
              std::string("# HELP m h\n# TYPE m gauge\n") + row.written + "\n");
}

TEST(ExpositionDeathTest, rejects_a_sample_with_other_labels) {
  Exposition e(MetricsFormat::prometheus);
  e.family(labelled);
  EXPECT_DEATH(e.sample({"a", "b"}, "1"), "one value for each label");
  EXPECT_DEATH(e.sample("1"), "the family has no labels");
  const std::string queue[] = {"q"};
  EXPECT_DEATH(e.sample(LabelText(waits.labels, queue), "1"), "the labels are those of the family");
}

TEST(Exposition, appends_the_text_of_another_program_before_its_end) {
  const std::string other = text_in(MetricsFormat::openmetrics, write_some);
  const std::string text = text_in(MetricsFormat::openmetrics, [&](Exposition& e) {
    e.append(other);
    e.family(labelled);
    e.sample({"a"}, "1");
  });
  EXPECT_TRUE(text.ends_with("m{l=\"a\"} 1\n# EOF\n"));
  EXPECT_EQ(text.find("# EOF"), text.size() - 6);
}

TEST(Exposition, takes_a_family_out_of_a_text) {
  for (const MetricsFormat format : {MetricsFormat::prometheus, MetricsFormat::openmetrics}) {
    std::string text = text_in(format, write_some);
    const auto taken = take_family(text, bytes);
    ASSERT_EQ(taken.size(), 2u);
    EXPECT_EQ(taken[0].labels, "slice=\"x\",device=\"0\"");
    EXPECT_EQ(taken[0].value, "1");
    EXPECT_EQ(taken[1].labels, "slice=\"y\"");
    EXPECT_THAT(text, Not(HasSubstr("carve_a_bytes")));
    EXPECT_THAT(text, HasSubstr("carve_b_seconds_total 0.000000001\n"));
    EXPECT_TRUE(take_family(text, bytes).empty());
  }
  std::string longer = "carve_a_bytes_more 1\ncarve_a_bytes 2";
  const auto taken = take_family(longer, bytes);
  EXPECT_EQ(longer, "carve_a_bytes_more 1\n");
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].value, "2");
}

TEST(Exposition, takes_a_family_out_of_any_text) {
  std::mt19937 random(5);
  const std::string_view pieces[] = {"carve_a_bytes", " ",       "{", "}",  "\n",
                                     "# HELP ",       "# TYPE ", "1", "\"", "="};
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (unsigned n = random() % 12; n > 0; --n) text += pieces[random() % std::size(pieces)];
    const std::string before = text;
    const auto taken = take_family(text, bytes);
    EXPECT_LE(text.size(), before.size());
    EXPECT_TRUE(take_family(text, bytes).empty()) << before;
  }
}

TEST(Exposition, selects_the_format_that_the_scraper_prefers) {
  const struct {
    const char* accept;
    MetricsFormat format;
  } rows[] = {
      {"", MetricsFormat::prometheus},
      {"*/*", MetricsFormat::prometheus},
      {"text/plain", MetricsFormat::prometheus},
      {"application/openmetrics-text", MetricsFormat::openmetrics},
      // Prometheus 2.42
      {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
       "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
       MetricsFormat::openmetrics},
      {"text/plain, application/openmetrics-text; q=0.9", MetricsFormat::prometheus},
      {"text/plain;q=0.4 , application/openmetrics-text ; version=1.0.0 ; q=0.9", MetricsFormat::openmetrics},
      {"application/openmetrics-text;q=0", MetricsFormat::prometheus},
      {"application/openmetrics-text;q=nan", MetricsFormat::prometheus},
      {"application/openmetrics-text;q=1e9", MetricsFormat::prometheus},
      {"application/openmetrics-text;q=", MetricsFormat::prometheus},
      {",,;;q=1,", MetricsFormat::prometheus},
  };
  EXPECT_EQ(metrics_format(nullptr), MetricsFormat::prometheus);
  for (const auto& row : rows) {
    const std::string accept = row.accept;
    EXPECT_EQ(metrics_format(&accept), row.format) << accept;
  }
  for (const MetricsFormat format : {MetricsFormat::prometheus, MetricsFormat::openmetrics}) {
    const std::string accept = metrics_accept(format);
    EXPECT_EQ(metrics_format(&accept), format);
  }
}

TEST(Exposition, keeps_the_last_digit_of_numbers) {
  EXPECT_EQ(seconds_of(0), "0.000000000");
  EXPECT_EQ(seconds_of(12'345'678'901), "12.345678901");
  EXPECT_EQ(seconds_of(UINT64_MAX), "18446744073.709551615");
  EXPECT_EQ(ratio_of(3), "0.0003");
  EXPECT_EQ(ratio_of(16000), "1.6000");
}

}  // namespace
}  // namespace carve::api
