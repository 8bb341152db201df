#include "core/attach_point.h"

#include <gtest/gtest.h>

namespace carve {
namespace {

TEST(AttachPoint, is_named_after_the_slot_or_the_claim) {
  const AttachPoint slot = ContainerSlot{17}, claim = AttachPoint::of_claim("0b6c-1d2f");
  EXPECT_EQ(slot.name, "s017");
  EXPECT_EQ(text(slot), "slot s017");
  EXPECT_EQ(claim.name, "c-0b6c-1d2f");
  EXPECT_EQ(text(claim), "claim 0b6c-1d2f");
  EXPECT_NE(slot, claim);
  EXPECT_EQ(claim, AttachPoint::of_claim("0b6c-1d2f"));
}

}  // namespace
}  // namespace carve
