#include "node/limits/limit_rule.h"

#include <gmock/gmock.h>

namespace carve::node {
namespace {

using testing::HasSubstr;

constexpr uint32_t anna = 1000, bob = 2000;
const ledger::Stamp now{1'000, "boot", 10};

Uuid uuid(unsigned index) {
  Uuid out;
  out.bytes[0] = static_cast<uint8_t>(index + 1);
  return out;
}

// A slice with equal parts on the devices.
Slice slice(uint32_t owner, Bytes memory, std::vector<unsigned> devices = {0}, Share share = {}) {
  Slice out;
  out.owner = owner;
  out.account = owner == anna ? "anna" : "bob";
  for (const unsigned index : devices) out.parts.push_back({uuid(index), memory, share, {}});
  return out;
}

struct LimitRuleTest : testing::Test {
  ledger::Ledger ledger;
  std::vector<api::Limit> limits;
  unsigned names = 0;

  LimitRuleTest() {
    for (unsigned index = 0; index < 3; ++index) {
      Device device;
      device.uuid = uuid(index);
      device.index = index;
      device.native = 80_GiB;
      apply(ledger.see(device));
    }
  }
  void apply(const Outcome<ledger::Change>& change) {
    ASSERT_TRUE(change) << change.error().message;
    ASSERT_TRUE(ledger.apply(*change));
  }
  uint64_t grant(Slice granted) {
    granted.name = "s" + std::to_string(names++);
    apply(ledger.grant(granted, now));
    return ledger.find(granted.name)->id;
  }
  Outcome<void> check(const Slice& wanted) const { return check_grant(limits, ledger, wanted); }
  std::string refusal(const Slice& wanted, FailureKind kind = FailureKind::insufficient_capacity) const {
    const auto checked = check(wanted);
    if (checked) return "accepted";
    EXPECT_EQ(checked.error().kind, kind) << checked.error().message;
    return checked.error().message;
  }
};

TEST_F(LimitRuleTest, report_whose_limit_it_is_its_value_and_what_is_left) {
  limits = {{.user = "anna", .uid = anna, .memory = 16_GiB}};
  grant(slice(anna, 12_GiB));
  EXPECT_EQ(refusal(slice(anna, 5_GiB)),
            "user anna holds 12 GiB of the limit of 16 GiB of memory, and 4 GiB are left; request at most 4 "
            "GiB, or "
            "stop a slice");
  EXPECT_TRUE(check(slice(anna, 4_GiB)));
  EXPECT_TRUE(check(slice(bob, 60_GiB)));
  EXPECT_EQ(
      refusal(slice(anna, 24_GiB), FailureKind::failed_precondition),
      "user anna: 24 GiB of memory requested for one slice, but the limit of all slices together is 16 GiB; "
      "request at most 4 GiB, or stop a slice");
}

TEST_F(LimitRuleTest, count_each_part_of_a_slice) {
  limits = {{.user = "anna", .uid = anna, .memory = 16_GiB}};
  grant(slice(anna, 4_GiB, {0, 1}));
  EXPECT_TRUE(check(slice(anna, 4_GiB, {0, 2})));
  EXPECT_THAT(refusal(slice(anna, 5_GiB, {0, 2})),
              HasSubstr("8 GiB are left; request at most 4 GiB on each of 2 devices, or stop a slice"));
}

TEST_F(LimitRuleTest, limit_slices_compute_and_devices) {
  limits = {{.user = "anna", .uid = anna, .share = Share{15000}, .slices = 2, .devices = 2}};
  grant(slice(anna, 1_GiB, {0}, Share{6000}));
  EXPECT_EQ(refusal(slice(anna, 1_GiB, {1}, Share{10000})),
            "user anna holds 60% of the limit of 150% of compute, and 90% are left; request at most 90%, or "
            "stop a slice");
  Slice whole = slice(anna, 1_GiB, {1});
  whole.exclusive = true;
  EXPECT_THAT(refusal(whole), HasSubstr("90% are left")) << "a whole device counts as 100 %";
  EXPECT_THAT(refusal(slice(anna, 1_GiB, {1, 2}, Share{100})),
              HasSubstr("holds 1 of the limit of 2 devices, and 1 is left; stop a slice"));
  EXPECT_TRUE(check(slice(anna, 1_GiB, {0, 1}, Share{100})));
  EXPECT_EQ(refusal(slice(anna, 1_GiB, {0, 1, 2}, Share{100}), FailureKind::failed_precondition),
            "user anna: 3 devices requested for one slice, but the limit of all slices together is 2; an "
            "operator can "
            "raise it with carve limit set");
  grant(slice(anna, 1_GiB, {1}));
  EXPECT_EQ(refusal(slice(anna, 1_GiB)),
            "user anna holds 2 of the limit of 2 slices, and 0 are left; stop a slice");
}

TEST_F(LimitRuleTest, a_limit_of_zero_forbids_every_slice) {
  limits = {{.user = "anna", .uid = anna, .slices = 0}};
  EXPECT_EQ(refusal(slice(anna, 1_GiB), FailureKind::failed_precondition),
            "user anna: the limit is 0 slices; an operator can raise it with carve limit set");
}

TEST_F(LimitRuleTest, a_users_own_limit_replaces_the_default_and_root_has_none) {
  limits = {{.user = "*", .slices = 1}, {.user = "anna", .uid = anna, .memory = 40_GiB}};
  grant(slice(anna, 1_GiB));
  grant(slice(bob, 1_GiB));
  EXPECT_TRUE(check(slice(anna, 1_GiB)));
  EXPECT_THAT(refusal(slice(bob, 1_GiB)), HasSubstr("uid 2000 holds 1 of the limit of 1 slice,"));
  EXPECT_TRUE(check(slice(3000, 1_GiB))) << "each user has the default for itself";
  grant(slice(0, 1_GiB));
  EXPECT_TRUE(check(slice(0, 1_GiB)));
  limits.push_back({.user = "root", .uid = 0, .slices = 1});
  EXPECT_THAT(refusal(slice(0, 1_GiB)), HasSubstr("user root"));
}

TEST_F(LimitRuleTest, limit_an_account_over_all_its_users) {
  limits = {{.account = "team", .memory = 10_GiB}};
  Slice of_anna = slice(anna, 6_GiB), of_bob = slice(bob, 6_GiB);
  of_anna.account = of_bob.account = "team";
  grant(of_anna);
  EXPECT_THAT(refusal(of_bob), HasSubstr("account team holds 6 GiB of the limit of 10 GiB of memory"));
  EXPECT_TRUE(check(slice(bob, 6_GiB))) << "under another account";
}

TEST_F(LimitRuleTest, do_not_limit_or_count_slices_of_pods) {
  limits = {{.user = "anna", .uid = anna, .slices = 1}};
  Slice of_claim = slice(anna, 1_GiB);
  of_claim.holder.claim = "0b6c";
  grant(of_claim);
  EXPECT_TRUE(check(slice(anna, 1_GiB)));
  grant(slice(anna, 1_GiB));
  EXPECT_TRUE(check(of_claim));
}

TEST_F(LimitRuleTest, let_a_slice_shrink_above_the_limit_but_not_grow) {
  const uint64_t id = grant(slice(anna, 12_GiB, {0}, Share{5000}));
  grant(slice(anna, 10_GiB));
  limits = {{.user = "anna", .uid = anna, .memory = 20_GiB, .share = Share{4000}}};
  const auto change = [&](Bytes memory, Share share) {
    ledger::Terms terms = ledger::terms_of(ledger.living().at(id).slice);
    terms.memory = memory;
    terms.share = share;
    const auto checked = check_change(limits, ledger, id, terms);
    return checked ? "accepted" : checked.error().message;
  };
  EXPECT_EQ(change(11_GiB, Share{5000}), "accepted") << "22 GiB were held, and 21 GiB are";
  EXPECT_EQ(change(13_GiB, Share{5000}),
            "user anna holds 10 GiB of the limit of 20 GiB of memory, and 10 GiB are left; request at most "
            "10 GiB, or "
            "stop a slice");
  EXPECT_THAT(change(8_GiB, Share{6000}), HasSubstr("60% of compute requested for one slice"));
}

}  // namespace
}  // namespace carve::node
