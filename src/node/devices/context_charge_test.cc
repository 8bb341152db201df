#include "node/devices/context_charge.h"

#include <gtest/gtest.h>

namespace carve::node {
namespace {

constexpr uint64_t MiB = 1 << 20;

// Returns the charge, given the bytes that NVML lists for the process and those in use on the device before,
// with and after it.
uint64_t charge(uint64_t listed, uint64_t before, uint64_t with_child, uint64_t after) {
  return whole_charge({listed * MiB}, {before * MiB}, {with_child * MiB}, {after * MiB}).count / MiB;
}

TEST(ContextCharge, includes_memory_that_the_driver_lists_for_no_process) {
  EXPECT_EQ(charge(518, 0, 527, 0), 527u) << "an H100";
  EXPECT_EQ(charge(256, 100, 356, 100), 256u);
}

TEST(ContextCharge, excludes_memory_of_other_processes) {
  EXPECT_EQ(charge(518, 0, 1527, 1000), 527u) << "another process started";
  EXPECT_EQ(charge(518, 1000, 1527, 0), 527u) << "another process ended afterwards";
  EXPECT_EQ(charge(518, 1000, 527, 0), 518u) << "another process ended meanwhile";
  EXPECT_EQ(charge(518, 0, 5000, 0), 518u + 64) << "another process started and ended";
}

}  // namespace
}  // namespace carve::node
