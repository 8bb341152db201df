#include "node/guard/slice_guard.h"

#include <gtest/gtest.h>

#include "node/guard/testing/memory_guard_fake.h"

namespace carve::node {
namespace {

constexpr uint64_t mib = 1 << 20;

struct SliceGuardTest : testing::Test {
  std::shared_ptr<MemoryGuardFake::State> kernel = std::make_shared<MemoryGuardFake::State>();
  SliceGuard guard{std::make_unique<MemoryGuardFake>(kernel), "by the security module bpf"};

  static SliceProtection slice(uint64_t id, uint64_t bytes = 10 * mib) {
    return {.slice = id,
            .limits = {{.minor = 0, .bytes = {bytes}, .fatal = {bytes + mib}}},
            .cgroups = {"/sys/fs/cgroup/carve/" + std::to_string(id)},
            .obstacle = ""};
  }
};

TEST_F(SliceGuardTest, protects_a_slice_with_its_limits_and_cgroup) {
  EXPECT_EQ(guard.protect(slice(7)).level, EnforcementLevel::kernel);
  EXPECT_EQ(guard.enforcement_of(7).level, EnforcementLevel::kernel);
  EXPECT_EQ(kernel->limits.at(7)[0].bytes.count, 10 * mib);
  EXPECT_EQ(kernel->cgroups.at("/sys/fs/cgroup/carve/7"), 7u);
  EXPECT_EQ(guard.status().slices, 1u);
  EXPECT_EQ(guard.protect(slice(7, 20 * mib)).level, EnforcementLevel::kernel);
  EXPECT_EQ(kernel->limits.at(7)[0].bytes.count, 20 * mib);
  guard.forget(7);
  EXPECT_TRUE(kernel->limits.empty() && kernel->cgroups.empty());
  EXPECT_EQ(guard.enforcement_of(7).level, EnforcementLevel::library);
}

TEST_F(SliceGuardTest, shows_why_a_slice_is_not_protected) {
  SliceProtection without = slice(1);
  without.obstacle = "no container has started";
  EXPECT_EQ(guard.protect(without), (Enforcement{enforced_by_guest, "no container has started", {}}));
  kernel->missing_cgroups = {"/sys/fs/cgroup/carve/2"};
  EXPECT_EQ(guard.protect(slice(2)),
            (Enforcement{enforced_by_guest, "there is no cgroup /sys/fs/cgroup/carve/2", {}}));
  EXPECT_EQ(guard.status().memory.level, EnforcementLevel::kernel);
  EXPECT_EQ(guard.status().slices, 0u);
}

TEST_F(SliceGuardTest, without_a_guard_slices_have_the_nodes_reason_if_a_guard_was_expected) {
  SliceGuard failed("the agent does not run as root", false);
  EXPECT_EQ(failed.protect(slice(1)), (Enforcement{enforced_by_guest, "the agent does not run as root", {}}));
  EXPECT_FALSE(failed.status().is_expected);
  SliceGuard none("simulated devices have no kernel driver");
  EXPECT_EQ(none.protect(slice(1)), (Enforcement{enforced_by_guest, "", {}}));
  EXPECT_EQ(none.status().memory.reason, "simulated devices have no kernel driver");
  EXPECT_TRUE(none.status().is_expected);
  EXPECT_EQ(none.findings_fd(), -1);
  EXPECT_TRUE(none.findings().empty());
  EXPECT_EQ(none.check(), "");
}

TEST_F(SliceGuardTest, a_guard_that_fails_protects_no_slice_and_is_reported_once) {
  guard.protect(slice(1));
  EXPECT_EQ(guard.check(), "");
  kernel->trouble = "the kernel skipped the guard's programs 3 times";
  EXPECT_EQ(guard.check(), kernel->trouble);
  EXPECT_EQ(guard.check(), "");
  EXPECT_EQ(guard.enforcement_of(1), (Enforcement{enforced_by_guest, kernel->trouble, {}}));
  EXPECT_EQ(guard.protect(slice(2)).level, EnforcementLevel::library);
  EXPECT_EQ(guard.status().memory.reason, kernel->trouble);
  EXPECT_FALSE(guard.status().is_expected);
}

TEST_F(SliceGuardTest, returns_findings_of_its_slices_only) {
  guard.protect(slice(1));
  kernel->findings = {{.slice = 1, .used = 5, .limit = 4, .kind = GUARD_BEYOND},
                      {.slice = 9, .used = 5, .limit = 4, .kind = GUARD_BEYOND}};
  const auto found = guard.findings();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].slice, 1u);
  EXPECT_TRUE(guard.findings().empty());
}

TEST_F(SliceGuardTest, finds_a_slice_that_went_beyond_its_limit_while_no_agent_ran) {
  guard.protect(slice(1));
  kernel->usage[1] = {.beyond = 0, .parts = {{.used = {0}, .committed = {0}, .peak = {99 * mib}}}};
  for (int i = 0; i < 2; ++i) {
    const auto found = guard.findings();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].kind, GUARD_BEYOND);
    EXPECT_EQ(found[0].used, 99 * mib);
  }
}

TEST_F(SliceGuardTest, forgets_slices_that_ended_without_an_agent) {
  kernel->limits = {{1, {}}, {2, {}}, {3, {}}};
  guard.keep_only({2});
  EXPECT_EQ(kernel->limits.size(), 1u);
  EXPECT_TRUE(kernel->limits.contains(2));
}

}  // namespace
}  // namespace carve::node
