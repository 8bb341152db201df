#include "core/part.h"

#include <gmock/gmock.h>

namespace carve {
namespace {

using testing::HasSubstr;

TEST(Parts, can_have_each_form_of_memory) {
  const auto parts = parse_parts("8GiB:30%,4GB:0.01%,50%:100%,16 units:12.5%,512KiB");
  ASSERT_TRUE(parts) << parts.error();
  ASSERT_EQ(parts->size(), 5u);
  EXPECT_EQ((*parts)[0], (Part{.memory_bytes = 8ull << 30, .share_bp = 3000}));
  EXPECT_EQ((*parts)[1], (Part{.memory_bytes = 4'000'000'000, .share_bp = 1}));
  EXPECT_EQ((*parts)[2], (Part{.memory_bp = 5000, .share_bp = 10000}));
  EXPECT_EQ((*parts)[3], (Part{.memory_units = 16, .share_bp = 1250}));
  EXPECT_EQ((*parts)[4], (Part{.memory_bytes = 512 << 10}));
}

TEST(Parts, are_written_as_they_are_parsed) {
  for (const char* text : {"8GiB:30%,4GiB:10%", "4000000000B", "1536MiB:0.01%,50%:12.5%", "16 units", "0B"}) {
    const auto parts = parse_parts(text);
    ASSERT_TRUE(parts) << parts.error();
    EXPECT_EQ(carve::text(*parts), text);
  }
}

TEST(Parts, are_rejected_with_their_number_and_text) {
  const struct {
    std::string text;
    const char* message;
  } rows[] = {
      {"", "part 1 '': no memory given; write MEMORY:SHARE, as in 8GiB:30%"},
      {",", "part 1 ''"},
      {"8GiB:30%,", "part 2 '': no memory given"},
      {"8GiB:30%,,4GiB:10%", "part 2 ''"},
      {":30%", "part 1 ':30%': no memory given"},
      {"8GiB:30%,4", "part 2 '4': memory '4' has no unit; try 4GiB"},
      {"8GiB:30%,4Gib:10%", "part 2 '4Gib:10%': memory '4Gib' is not a size"},
      {"8GiB:30", "share '30' is not a share; try 30% or 12.5%"},
      {"8GiB:", "share '' is not a share"},
      {"8GiB:0%", "share '0%' is not between 0.01% and 100%"},
      {"8GiB:101%", "share '101%' is not between"},
      {"8GiB:30%:10%", "share '30%:10%' is not a share"},
      {"8GiB:-1%", "share '-1%' is not a share"},
      {"8GiB:0.001%", "must be a multiple of 0.01%"},
      {" 8GiB", "memory ' 8GiB' is not a size"},
      {"8GiB, 4GiB", "part 2 ' 4GiB'"},
      {"-8GiB", "memory '-8GiB' is not a size"},
      {"1e9B", "is not a size"},
      {"99999999999TiB", "is too large; the maximum is 16 EiB"},
      {"99999999999999999999GiB", "is not a size"},
      {"0%:30%", "memory '0%' is not between"},
      {"200%:30%", "memory '200%' is not between"},
      {"0 units", "must be 1 to 1000000 units; try 16 units"},
      {"1000001 units", "must be 1 to 1000000 units"},
      {"1.5 units", "must be 1 to 1000000 units"},
      {" units", "must be 1 to 1000000 units"},
      {"8GiB;4GiB", "is not a size"},
      {std::string("8GiB\0:30%", 9), "memory '8GiB?' is not a size"},
      {"8GiB\n", "memory '8GiB?'"},
      {"\xff\xfe",
       "memory '?"
       "?' is not a size"},
      {std::string(500, 'x'), "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'"},
      {std::string(16, ','), "17 parts are given; a slice can have 1 to 16"},
      {std::string(1 << 20, ','), "1048577 parts are given"},
  };
  for (const auto& row : rows) {
    const auto parts = parse_parts(row.text);
    ASSERT_FALSE(parts) << row.text.substr(0, 40);
    EXPECT_THAT(parts.error(), HasSubstr(row.message)) << row.text.substr(0, 40);
    EXPECT_LT(parts.error().size(), 250u);
  }
}

TEST(Parts, are_limited_to_sixteen) {
  std::string text = "1GiB";
  for (int i = 2; i <= 16; ++i) text += ",1GiB";
  EXPECT_EQ(parse_parts(text)->size(), 16u);
  EXPECT_FALSE(parse_parts(text + ",1GiB"));
}

TEST(Parts, can_have_memory_in_the_terms_of_another_product) {
  const auto words = [](std::string_view text) -> Result<Part, std::string> {
    if (text != "four") return tl::unexpected(std::string("is not four"));
    return Part{.memory_bytes = 4};
  };
  EXPECT_EQ(parse_parts("four:1%", words)->front(), (Part{.memory_bytes = 4, .share_bp = 100}));
  EXPECT_EQ(parse_parts("4GiB", words).error(), "part 1 '4GiB': memory '4GiB' is not four");
}

}  // namespace
}  // namespace carve
