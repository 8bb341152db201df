#include "workload/host_fit.h"

#include <gtest/gtest.h>

namespace carve::workload {
namespace {

constexpr uint64_t gib = uint64_t{1} << 30;
constexpr HostResources host = {.cpu_milli = 4000, .memory_bytes = 8 * gib};

TEST(HostFit, accepts_a_request_up_to_the_last_core_and_byte) {
  EXPECT_EQ(host_problem(host, host, {}), "");
  EXPECT_EQ(host_problem({.cpu_milli = 500}, host, {.cpu_milli = 3500, .memory_bytes = 8 * gib}), "");
  EXPECT_EQ(host_problem({}, host, {.cpu_milli = 9000}), "") << "nothing is requested";
  EXPECT_EQ(host_problem({.cpu_milli = 99'000}, {}, {}), "") << "the capacity is not known";
}

TEST(HostFit, reports_the_missing_amounts) {
  EXPECT_EQ(host_problem({.cpu_milli = 3000}, host, {.cpu_milli = 2500}),
            "a replica requests 3 cores, but only 1.5 of 4 are free");
  EXPECT_EQ(host_problem({.memory_bytes = 6 * gib}, host, {.memory_bytes = 3 * gib}),
            "a replica requests 6 GiB of memory, but only 5 GiB of 8 GiB are free");
  EXPECT_EQ(host_problem({.cpu_milli = 1}, host, {.cpu_milli = 5000}),
            "a replica requests 0.001 cores, but only 0 of 4 are free");
}

}  // namespace
}  // namespace carve::workload
