#include "core/container_slot.h"

#include <gtest/gtest.h>

namespace carve {
namespace {

TEST(ContainerSlot, is_parsed_as_it_is_written) {
  for (uint32_t number = 0; number < max_container_slots; ++number)
    EXPECT_EQ(parse_container_slot(text(ContainerSlot{number})), ContainerSlot{number});
  EXPECT_EQ(text(ContainerSlot{17}), "s017");
}

TEST(ContainerSlot, is_not_parsed_from_any_other_text) {
  for (const char* other : {"", "s", "s17", "s0017", "S017", "s256", "s999", "s-17", "s+17", "s01a", "s01/",
                            "../s", " s017", "s017 "})
    EXPECT_FALSE(parse_container_slot(other)) << other;
}

}  // namespace
}  // namespace carve
