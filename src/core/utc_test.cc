#include "core/utc.h"

#include <gtest/gtest.h>

namespace carve {
namespace {

TEST(Utc, dates_and_times_are_parsed) {
  EXPECT_EQ(*parse_utc("from", "1970-01-01"), 0);
  EXPECT_EQ(*parse_utc("from", "1970-01-02T00:00:01Z"), 86'401'000'000'000);
  EXPECT_EQ(*parse_utc("from", "2000-02-29"), 951'782'400'000'000'000);
  EXPECT_EQ(*parse_utc("from", "2026-11-24T22:30:00Z"), 1'795'559'400'000'000'000);
  EXPECT_EQ(*parse_utc("from", "2199-12-31T23:59:59Z"), 7'258'118'399'000'000'000);
}

TEST(Utc, a_time_is_written_as_it_is_parsed) {
  for (const char* text : {"1970-01-01T00:00:00Z", "2000-02-29T23:59:59Z", "2026-11-24T22:30:00Z"})
    EXPECT_EQ(text_utc(*parse_utc("from", text)), text);
}

TEST(Utc, a_month_ends_where_the_next_one_begins) {
  const UtcMonth month = month_of(*parse_utc("at", "2027-12-31T23:59:59Z"));
  EXPECT_EQ(text_utc(month.from_ns), "2027-12-01T00:00:00Z");
  EXPECT_EQ(text_utc(month.to_ns), "2028-01-01T00:00:00Z");
}

TEST(Utc, other_text_is_rejected) {
  for (const char* text :
       {"", "2026", "2026-11", "2026-11-31", "2026-02-29", "2026-13-01", "2026-00-01", "1969-12-31",
        "2200-01-01", "2026-11-01T", "2026-11-01T08:30Z", "2026-11-01T08:30:00", "2026-11-01T08:30:00+01:00",
        "2026-11-01T24:00:00Z", "2026-11-01T08:60:00Z", "2026-11-01T08:30:60Z", "2026-11-01T08:30:00Zx",
        " 2026-11-01", "+026-11-01"})
    EXPECT_FALSE(parse_utc("from", text)) << text;
  EXPECT_EQ(parse_utc("from", "yesterday").error().message,
            "from 'yesterday': must be a date or a time in UTC, such as 2026-11-01 or 2026-11-01T08:30:00Z");
}

}  // namespace
}  // namespace carve
