#include "bill/tariff.h"

#include <gtest/gtest.h>

namespace carve::bill {
namespace {

TEST(Millionths, are_parsed_exactly) {
  struct Row {
    const char* text;
    int64_t count;  // -1 if rejected.
  } const rows[] = {
      {"0", 0},
      {"10", 10'000'000},
      {"0.30", 300'000},
      {"2.5", 2'500'000},
      {"0.000001", 1},
      {"1.234567", 1'234'567},
      {"1000000", 1'000'000'000'000},
      {"0.0000001", -1},
      {"1000000.000001", -1},
      {"", -1},
      {"-1", -1},
      {"1e3", -1},
      {" 1", -1},
      {"1 ", -1},
      {"1.", -1},
      {".5", -1},
      {"1,5", -1},
      {"9999999999999999999", -1},
      {"99999999999999999999", -1},
  };
  for (const Row& row : rows) {
    const auto read = parse_millionths("price", row.text, max_units);
    EXPECT_EQ(read ? read->count : -1, row.count) << row.text;
  }
  EXPECT_EQ(parse_millionths("pricePerGpuHour", "1e3", max_price).error().message,
            "pricePerGpuHour '1e3': must be a decimal number with at most 6 decimals, such as 0.30");
  EXPECT_EQ(parse_millionths("gpuHourUnits", "1000001", max_units).error().message,
            "gpuHourUnits '1000001': must be at most 1000000");
}

TEST(Millionths, are_formatted_rounded_half_to_even) {
  struct Row {
    __int128 count;
    unsigned decimals;
    const char* text;
  } const rows[] = {
      {3'000'000, 6, "3.000000"},
      {3'603'889, 2, "3.60"},
      {5'000, 2, "0.00"},
      {15'000, 2, "0.02"},
      {25'000, 2, "0.02"},
      {25'001, 2, "0.03"},
      {999'999, 2, "1.00"},
      {1, 6, "0.000001"},
      {500'000, 0, "0"},
      {1'500'000, 0, "2"},
      {-1'500'000, 1, "-1.5"},
      {-1, 2, "0.00"},
      {__int128{INT64_MAX} * 1000, 6, "9223372036854775.807000"},
  };
  for (const Row& row : rows) EXPECT_EQ(text(row.count, row.decimals), row.text);
  EXPECT_EQ(text(__int128{INT64_MAX} * 1'000'000, 6), "9223372036854775807.000000");
}

Tariff tariff_from(Ns from) {
  return {.currency = "EUR", .from = from, .units = shipped_units(), .price = {2'000'000}};
}

TEST(Tariffs, are_valid_from_their_date_until_the_next_one) {
  const auto tariffs = Tariffs::from({tariff_from(200), tariff_from(100)});
  ASSERT_TRUE(tariffs);
  EXPECT_EQ(tariffs->at(99), nullptr);
  EXPECT_EQ(tariffs->at(100)->from, 100);
  EXPECT_EQ(tariffs->at(199)->from, 100);
  EXPECT_EQ(tariffs->at(INT64_MAX)->from, 200);
  EXPECT_EQ(Tariffs::from({})->at(0), nullptr);
  EXPECT_EQ(shipped_units().at("NVIDIA A10"), Millionths{10'000'000});
}

TEST(Tariffs, are_rejected_if_they_contradict_each_other_or_exceed_a_limit) {
  const auto message = [](auto change) {
    std::vector<Tariff> list{tariff_from(0), tariff_from(second_ns)};
    change(list[1]);
    const auto tariffs = Tariffs::from(list);
    return tariffs ? std::string() : tariffs.error().message;
  };
  EXPECT_EQ(message([](Tariff&) {}), "");
  EXPECT_EQ(message([](Tariff& t) { t.from = 0; }),
            "two tariffs start at 1970-01-01T00:00:00Z; change the date of one of them");
  EXPECT_EQ(message([](Tariff& t) { t.currency = "USD"; }),
            "tariffs in EUR and in USD: an invoice has one currency; use the same one in all tariffs");
  EXPECT_EQ(message([](Tariff& t) { t.currency = "eur"; }),
            "currency 'eur': must be three capital letters, such as EUR");
  EXPECT_EQ(message([](Tariff& t) { t.price = {-1}; }), "pricePerGpuHour -0.000001: must be 0 to 1000000000");
  EXPECT_NE(message([](Tariff& t) { t.price = {max_price.count + 1}; }), "");
  EXPECT_EQ(message([](Tariff& t) { t.units["NVIDIA A10"] = {0}; }),
            "gpuHourUnits 0.000000 of model 'NVIDIA A10': must be above 0 and at most 1000000");
  EXPECT_NE(message([](Tariff& t) { t.units["x"] = {max_units.count + 1}; }), "");
  EXPECT_NE(message([](Tariff& t) { t.units[""] = {1}; }), "");
  EXPECT_NE(message([](Tariff& t) { t.from = -1; }), "");
  EXPECT_NE(message([](Tariff& t) { t.granularity = 0; }), "");
  EXPECT_NE(message([](Tariff& t) { t.granularity = max_granularity_ns + 1; }), "");
  EXPECT_NE(message([](Tariff& t) { t.minimum = -1; }), "");
}

}  // namespace
}  // namespace carve::bill
