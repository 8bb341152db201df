#include "core/fields.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace carve::fields {
namespace {

enum class Colour { red, green };
struct Inner {
  uint64_t x = 0;
  std::string y;
};
struct Everything {
  uint32_t index = 0;
  std::string name;
  bool on = false;
  std::optional<uint64_t> maybe;
  std::optional<Inner> inner;
  std::vector<Inner> inners;
  std::map<std::string, std::string> labels;
  Inner one;
  Colour colour = Colour::red;
  std::optional<std::string> text;
  std::optional<bool> flag;
  Bytes memory;
  std::optional<Share> share;
  int64_t achieved_60s_bp = 0;
  std::vector<uint32_t> numbers;
};
struct Reserved {
  int namespace_ = 0;
};
struct Single {
  std::optional<std::string> only;
};

template <class T>
std::string names(const T& object) {
  std::string out;
  each(object, [&](const char* name, const auto&) { out += std::string(out.empty() ? "" : " ") + name; });
  return out;
}

TEST(Fields, have_the_names_and_order_of_their_declaration) {
  EXPECT_EQ(count<Everything>, 15u);
  EXPECT_EQ(names(Everything{}),
            "index name on maybe inner inners labels one colour text flag memory_bytes share_bp "
            "achieved_60s_bp numbers");
  EXPECT_EQ(names(Inner{}), "x y");
  EXPECT_EQ(names(Single{}), "only");
  EXPECT_EQ(names(Reserved{}), "namespace");
}

TEST(Fields, can_be_read_and_written) {
  Inner inner{.x = 7, .y = "seven"};
  each(inner, [](const char*, auto& field) {
    if constexpr (std::is_same_v<std::remove_reference_t<decltype(field)>, uint64_t>) field = 8;
  });
  EXPECT_EQ(inner.x, 8u);
  EXPECT_EQ(fields::get<1>(tie(inner)), "seven");
}

}  // namespace
}  // namespace carve::fields
