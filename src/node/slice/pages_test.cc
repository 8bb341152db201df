#include "node/slice/pages.h"

#include <gtest/gtest.h>

namespace carve::node {
namespace {

Slice two_parts() {
  Slice slice;
  slice.name = "train";
  slice.isolation = Isolation::memory_and_compute;
  slice.policy = Policy::guaranteed_burst_share;
  for (uint8_t i = 1; i <= 2; ++i) {
    SlicePart& part = slice.parts.emplace_back();
    part.device.bytes[0] = i;
    part.memory = {i * (1ull << 30)};
    part.share = {i * 1000u};
    part.spill = {i * (1ull << 20)};
  }
  return slice;
}

TEST(ControlPage, contains_the_terms_of_each_part) {
  auto control = std::make_unique<shm::Control>();
  fill_control(*control, two_parts(), {{100}, {0}});
  EXPECT_STREQ(control->slice, "train");
  ASSERT_EQ(control->device_count, 2u);
  EXPECT_EQ(control->devices[0].quota, 1ull << 30);
  EXPECT_EQ(control->devices[1].quota, 2ull << 30);
  EXPECT_EQ(control->devices[1].uuid[0], 2);
  EXPECT_EQ(control->devices[1].share, 2000u);
  EXPECT_EQ(control->devices[1].spill, 2ull << 20);
  EXPECT_EQ(control->devices[0].context_bytes, 100u);
  EXPECT_EQ(control->devices[1].context_bytes, 0u);
  EXPECT_EQ(control->devices[0].memory, shm::Memory::limited);
}

TEST(ControlPage, has_a_higher_epoch_after_each_change) {
  auto control = std::make_unique<shm::Control>();
  Slice slice = two_parts();
  fill_control(*control, slice, {{}, {}});
  const uint64_t before = control->epoch.load();
  slice.isolation = Isolation::none;
  slice.name = std::string(300, 'x');
  fill_control(*control, slice, {{}, {}});
  EXPECT_GT(control->epoch.load(), before);
  EXPECT_EQ(control->devices[0].memory, shm::Memory::not_limited);
  EXPECT_EQ(control->slice[sizeof control->slice - 1], 0) << "a long name is cut";
}

}  // namespace
}  // namespace carve::node
