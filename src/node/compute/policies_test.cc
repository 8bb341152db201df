#include "node/compute/policies.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace carve::node {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
constexpr Policy fixed_policy = Policy::fixed_share, guaranteed = Policy::guaranteed_burst_share,
                 native = Policy::native_burst_share;

const Uuid device{{1}}, other{{2}};

struct Machine {
  std::filesystem::path folder;
  std::map<Uuid, std::vector<std::string>> living;
  std::string trouble, boot_id = "first";
  bool may_follow = true, booted = false;
  Machine() {
    char name[] = "/tmp/carve-policies-XXXXXX";
    folder = mkdtemp(name);
  }
  ~Machine() { std::filesystem::remove_all(folder); }
  Policies::Holders holders() {
    return [this](const Uuid& uuid) { return living[uuid]; };
  }
  Policies start(std::optional<Policy> said = {}, std::optional<Policy> otherwise = {}) {
    Policies policies;
    const auto opened = policies.open({.path = folder / "policy.json",
                                       .boot_id = boot_id,
                                       .devices = {device, other},
                                       .said = said,
                                       .otherwise = [&](const Uuid&) { return otherwise; },
                                       .may_follow = [this](Policy) { return may_follow; },
                                       .holders = holders()});
    trouble = opened.trouble;
    booted = opened.booted;
    return policies;
  }
};

TEST(Policies, are_fixed_share_on_a_node_without_a_setting) {
  Machine m;
  const Policies p = m.start();
  EXPECT_EQ(m.trouble, "");
  EXPECT_EQ(p.of(device), (Setting<Policy>{fixed_policy, fixed_policy, {}}));
}

TEST(Policies, change_on_each_device_when_its_own_slices_have_ended) {
  Machine m;
  Policies p = m.start();
  m.living[device] = {"a", "b"};
  ASSERT_TRUE(p.want(guaranteed, m.holders()));
  EXPECT_EQ(p.of(other), (Setting<Policy>{guaranteed, guaranteed, {}}));
  EXPECT_EQ(p.of(device).effective, fixed_policy);
  EXPECT_THAT(p.of(device).blocked_by, ElementsAre("a", "b"));
  m.living[device] = {"b"};
  EXPECT_FALSE(p.settle(m.holders()));
  EXPECT_THAT(p.of(device).blocked_by, ElementsAre("b"));
  m.living[device] = {};
  EXPECT_TRUE(p.settle(m.holders()));
  EXPECT_EQ(p.of(device), (Setting<Policy>{guaranteed, guaranteed, {}}));
}

TEST(Policies, change_after_a_restart_only_on_devices_without_slices) {
  Machine m;
  {
    Policies p = m.start();
    m.living = {{device, {"a"}}, {other, {"b"}}};
    ASSERT_TRUE(p.want(native, m.holders()));
  }
  m.living[other] = {};
  const Policies p = m.start();
  EXPECT_EQ(p.desired(), native);
  EXPECT_EQ(p.of(device), (Setting<Policy>{native, fixed_policy, {"a"}}));
  EXPECT_EQ(p.of(other), (Setting<Policy>{native, native, {}}));
}

TEST(Policies, become_effective_at_a_boot_even_for_slices_without_processes) {
  Machine m;
  m.living[device] = {"created"};
  m.start({}, fixed_policy);
  EXPECT_EQ(m.start(native).of(device), (Setting<Policy>{native, fixed_policy, {"created"}}));
  EXPECT_FALSE(m.booted) << "a restart of the agent is not a boot";
  m.boot_id = "second";
  m.may_follow = false;
  EXPECT_TRUE(m.start().of(device).pending()) << "the policy stays if the guaranteed shares do not fit";
  m.boot_id = "third";
  m.may_follow = true;
  EXPECT_EQ(m.start().of(device), (Setting<Policy>{native, native, {}}));
  EXPECT_TRUE(m.booted);
  m.start();
  EXPECT_FALSE(m.booted);
}

TEST(Policies, of_the_command_line_override_the_stored_ones) {
  Machine m;
  { ASSERT_TRUE(m.start().want(native, m.holders())); }
  EXPECT_EQ(m.start(guaranteed).of(device).effective, guaranteed);
  EXPECT_EQ(m.start().of(device).effective, guaranteed) << "the command line's policy is stored";
}

TEST(Policies, of_slices_that_are_older_than_the_file_are_kept) {
  Machine m;
  m.living[device] = {"old"};
  const Policies p = m.start(guaranteed, native);
  EXPECT_EQ(p.of(device), (Setting<Policy>{guaranteed, native, {"old"}}));
}

TEST(Policies, in_a_damaged_file_are_reported_and_rewritten) {
  Machine m;
  std::ofstream(m.folder / "policy.json") << "{\"desired\": 7";
  m.start(guaranteed);
  EXPECT_THAT(m.trouble, HasSubstr("was unreadable and has been replaced"));
  EXPECT_EQ(m.start().of(device).effective, guaranteed);
  EXPECT_EQ(m.trouble, "");
}

TEST(Policies, that_cannot_be_stored_are_rejected_without_a_change) {
  Machine m;
  Policies p = m.start();
  std::filesystem::remove_all(m.folder);
  const auto done = p.want(native, m.holders());
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("nothing was changed"));
  EXPECT_EQ(p.of(device), (Setting<Policy>{fixed_policy, fixed_policy, {}}));
}

}  // namespace
}  // namespace carve::node
