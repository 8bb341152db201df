#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/share.h"

namespace carve {
namespace {

TEST(Bytes, parses_sizes_with_units) {
  const struct {
    const char* input;
    uint64_t bytes;
  } rows[] = {
      {"4GiB", 4ull << 30},
      {"4Gi", 4ull << 30},
      {"512Mi", 512ull << 20},
      {"4096MiB", 4ull << 30},
      {"4GB", 4'000'000'000},
      {"1.5GiB", 3ull << 29},
      {"20GB", 20'000'000'000},
      {"100B", 100},
      {"0.5KiB", 512},
      {"0GiB", 0},
      {"16777215TiB", 16777215ull << 40},
  };
  for (const auto& row : rows) {
    const auto read = parse_bytes(row.input);
    ASSERT_TRUE(read) << row.input;
    EXPECT_EQ(read->count, row.bytes) << row.input;
  }
}

TEST(Bytes, rejects_other_text_with_a_message) {
  for (const char* input :
       {"", "GiB", "12X", "4096", "-1GiB", "4 GiB", "4gib", "4GiBs", "1.GiB", ".5GiB", "1.2.3GiB", "0.3B",
        "16777216TiB", "99999999999999999999B", "1e3MiB", "+4GiB", "0x10MiB"}) {
    const auto read = parse_bytes(input);
    ASSERT_FALSE(read) << input;
    EXPECT_GT(std::string_view(read.error().message).size(), 10u);
  }
}

TEST(Bytes, prints_exactly_if_one_decimal_is_sufficient) {
  EXPECT_STREQ(text(Bytes{4ull << 30}).c_str(), "4 GiB");
  EXPECT_STREQ(text(Bytes{3ull << 29}).c_str(), "1.5 GiB");
  EXPECT_STREQ(text(22731_MiB).c_str(), "22731 MiB");
  EXPECT_STREQ(text(100_B).c_str(), "100 B");
  EXPECT_STREQ(text(0_B).c_str(), "0 B");
  EXPECT_STREQ(text(Bytes{1'000'000'000}).c_str(), "953.7 MiB");
}

TEST(Share, parses_percent_into_basis_points) {
  const struct {
    const char* input;
    uint32_t points;
  } rows[] = {{"30%", 3000}, {"12.5%", 1250}, {"0.01%", 1}, {"100%", 10000}, {"99.99%", 9999}, {"5.0%", 500}};
  for (const auto& row : rows) {
    const auto read = parse_share(row.input);
    ASSERT_TRUE(read) << row.input;
    EXPECT_EQ(read->basis_points, row.points) << row.input;
  }
}

TEST(Share, rejects_other_text) {
  for (const char* input : {"", "%", "30", "0%", "0.00%", "100.01%", "101%", "0.001%", "-1%", "30 %", "1e1%",
                            "9999999999999999999%"})
    EXPECT_FALSE(parse_share(input)) << input;
}

TEST(Share, prints_the_text_that_it_parsed) {
  for (const char* input : {"30%", "12.5%", "0.01%", "100%", "99.99%"})
    EXPECT_STREQ(text(*parse_share(input)).c_str(), input);
}

}  // namespace
}  // namespace carve
