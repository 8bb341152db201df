#include "node/slice/audit.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace carve::node {
namespace {

TEST(Audit, does_what_was_configured_to_those_inside_a_limited_slice_alone) {
  for (const AuditAction act : {AuditAction::report, AuditAction::freeze, AuditAction::kill}) {
    EXPECT_EQ(answer_to({}, act), act);
    EXPECT_EQ(answer_to({.limited = false}, act), AuditAction::report);
    EXPECT_EQ(answer_to({.graphics_only = true}, act), AuditAction::report);
    EXPECT_EQ(answer_to({.is_mps_server = true}, act), AuditAction::report);
  }
}

TEST(Audit, tells_the_ways_round_the_library_apart) {
  const auto says = [](ProcessEvidence looks, const char* text) {
    EXPECT_NE(why_unattached(looks).find(text), std::string::npos) << why_unattached(looks);
  };
  says({.loader = false}, "static program");
  says({.loader = true, .preload_asked = false}, "unset");
  says({.our_library = true, .the_driver = true, .loader = true}, "dlmopen");
  says({.our_library = true, .the_driver = false, .loader = true}, "without libcuda");
  says({.loader = true, .preload_asked = true}, "not loaded");
}

TEST(Audit, sees_this_process_as_a_dynamic_one_without_the_library) {
  const ProcessEvidence looks = looks_of(getpid());
  EXPECT_FALSE(looks.our_library);
  EXPECT_FALSE(looks.the_driver);
  EXPECT_TRUE(looks.loader);
  EXPECT_FALSE(is_mps_server(getpid()));
}

TEST(Audit, reads_its_own_words_and_no_others) {
  for (const AuditAction act : {AuditAction::report, AuditAction::freeze, AuditAction::kill})
    EXPECT_EQ(parse_audit_act(text(act)), act);
  for (const OverQuotaAction act : {OverQuotaAction::report, OverQuotaAction::refuse, OverQuotaAction::kill})
    EXPECT_EQ(parse_over_quota_act(text(act)), act);
  for (const char* word : {"", "Kill", "kil", "killx", "report "}) {
    EXPECT_FALSE(parse_audit_act(word)) << word;
    EXPECT_FALSE(parse_over_quota_act(word)) << word;
  }
}

TEST(Audit, work_beyond_the_leases_is_certain_at_the_second_look_and_told_once) {
  Bypass bypass;
  EXPECT_FALSE(bypass.certain(98, 10));
  EXPECT_TRUE(bypass.certain(98, 10));
  EXPECT_FALSE(bypass.certain(98, 10));
  EXPECT_FALSE(bypass.certain(20, 10)) << "the driver samples other moments, in whole percents";
  EXPECT_FALSE(bypass.certain(98, 10));
  EXPECT_TRUE(bypass.certain(98, 10));
}

}  // namespace
}  // namespace carve::node
