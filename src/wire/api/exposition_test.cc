#include "wire/api/exposition.h"

#include <gtest/gtest.h>

namespace carve::api {
namespace {

TEST(Exposition, announces_a_family_once_and_only_if_it_has_samples) {
  Exposition e;
  e.family("carve_a_bytes", "gauge", "How\nmuch, by \\ and \".");
  e.sample({{"slice", "x"}, {"device", "0"}}, "1");
  e.sample({{"slice", "y"}, {"device", "0"}}, "2");
  e.family("carve_unused", "gauge", "Nothing.");
  e.family("carve_b_seconds_total", "counter", "Time.");
  e.sample({}, seconds_of(1));
  EXPECT_EQ(e.text(),
            "# HELP carve_a_bytes How\\nmuch, by \\\\ and \".\n# TYPE carve_a_bytes gauge\n"
            "carve_a_bytes{slice=\"x\",device=\"0\"} 1\ncarve_a_bytes{slice=\"y\",device=\"0\"} 2\n"
            "# HELP carve_b_seconds_total Time.\n# TYPE carve_b_seconds_total counter\n"
            "carve_b_seconds_total 0.000000001\n");
}

TEST(Exposition, escapes_label_values) {
  const struct {
    const char* value;
    const char* written;
  } rows[] = {
      {"a\"} 1\nevil 2", R"(m{l="a\"} 1\nevil 2"} 0)"},
      {"back\\slash", R"(m{l="back\\slash"} 0)"},
      {"\\\"", R"(m{l="\\\""} 0)"},
      {"", R"(m{l=""} 0)"},
      {"caf\xc3\xa9", "m{l=\"caf\xc3\xa9\"} 0"},
  };
  for (const auto& row : rows) {
    Exposition e;
    e.family("m", "gauge", "h");
    e.sample({{"l", row.value}}, "0");
    EXPECT_EQ(e.text(), std::string("# HELP m h\n# TYPE m gauge\n") + row.written + "\n");
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
