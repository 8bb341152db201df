#include "node/reconcile/bypass.h"

#include <gtest/gtest.h>

namespace carve::node {
namespace {

TEST(Bypass, takes_the_configured_action_only_inside_a_limited_slice) {
  for (const AuditAction action : {AuditAction::report, AuditAction::freeze, AuditAction::kill}) {
    EXPECT_EQ(action_against({}, action), action);
    EXPECT_EQ(action_against({.limited = false}, action), AuditAction::report);
    EXPECT_EQ(action_against({.graphics_only = true}, action), AuditAction::report);
    EXPECT_EQ(action_against({.is_mps_server = true}, action), AuditAction::report);
  }
}

TEST(Bypass, distinguishes_the_ways_to_bypass_the_library) {
  const auto says = [](ProcessEvidence seen, const char* text) {
    EXPECT_NE(why_unattached(seen).find(text), std::string::npos) << why_unattached(seen);
  };
  says({.loader = false}, "statically linked");
  says({.loader = true, .preload_asked = false}, "unset");
  says({.our_library = true, .the_driver = true, .loader = true}, "dlmopen");
  says({.our_library = true, .the_driver = false, .loader = true}, "without libcuda");
  says({.loader = true, .preload_asked = true}, "not loaded");
}

TEST(Bypass, is_certain_at_the_second_sample_beyond_the_leases_and_reported_once) {
  Bypass bypass;
  EXPECT_FALSE(bypass.certain(98, 10));
  EXPECT_TRUE(bypass.certain(98, 10));
  EXPECT_FALSE(bypass.certain(98, 10));
  EXPECT_FALSE(bypass.certain(20, 10)) << "the driver samples at other moments and in whole percents";
  EXPECT_FALSE(bypass.certain(98, 10));
  EXPECT_TRUE(bypass.certain(98, 10));
}

}  // namespace
}  // namespace carve::node
