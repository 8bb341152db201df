#include "http/message.h"

#include <gtest/gtest.h>

namespace carve::http {
namespace {

TEST(Bearer, is_exactly_one_well_formed_authorization_header) {
  const struct {
    std::vector<std::string> values;
    std::optional<std::string_view> token;
  } rows[] = {
      {{}, std::nullopt},
      {{"Bearer abc.DEF-1_2~3+4/5="}, "abc.DEF-1_2~3+4/5="},
      {{"bearer   abc"}, "abc"},
      {{"Bearer "}, std::nullopt},
      {{"Bearer"}, std::nullopt},
      {{"Bearerabc"}, std::nullopt},
      {{"Basic abc"}, std::nullopt},
      {{"Bearer a b"}, std::nullopt},
      {{"Bearer a\x01"}, std::nullopt},
      {{"Bearer a\xc3\xa4"}, std::nullopt},
      {{"Bearer a", "Bearer b"}, std::nullopt},
      {{"Bearer a", "Bearer a"}, std::nullopt},
  };
  for (const auto& row : rows) {
    Headers headers;
    headers.add("Host", "x");
    for (const std::string& value : row.values) headers.add("authorization", value);
    EXPECT_EQ(bearer_token(headers), row.token) << (row.values.empty() ? "" : row.values[0]);
  }
}

}  // namespace
}  // namespace carve::http
