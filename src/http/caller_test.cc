#include "http/caller.h"

#include <gtest/gtest.h>

namespace carve::http {
namespace {

constexpr uint32_t operators[] = {0, 70};

TEST(Caller, is_anonymous_without_rights_by_default) {
  const Caller caller;
  EXPECT_TRUE(caller.anonymous());
  EXPECT_FALSE(caller.uid());
  EXPECT_FALSE(caller.process());
  EXPECT_FALSE(caller.may_operate());
  for (const uint32_t owner : {0u, 70u, 1000u, UINT32_MAX}) {
    EXPECT_FALSE(caller.may_see(owner)) << owner;
    EXPECT_FALSE(caller.may_see(owner, "research")) << owner;
    EXPECT_FALSE(caller.may_change(owner)) << owner;
  }
  EXPECT_EQ(caller.text(), "anonymous");
}

TEST(Caller, has_the_rights_of_its_kind) {
  const struct {
    Caller caller;
    const char* text;
    bool sees_own, changes_own, sees_others, operates;  // "Own" belongs to uid 1000 and the account research.
  } rows[] = {
      {Caller::user(0, {5, 1}, operators), "root", true, true, true, true},
      {Caller::user(70, {5, 1}, operators), "uid 70", true, true, true, true},
      {Caller::user(1000, {5, 1}, operators), "uid 1000", true, true, false, false},
      {Caller::user(1001, {5, 1}, operators), "uid 1001", false, false, false, false},
      {Caller::user(0, {5, 1}, {}), "root", false, false, true, false},
      {Caller::user(1000, {5, 1}, operators).inside("a"), "uid 1000 in slice a", true, true, false, false},
      {Caller::user(0, {5, 1}, operators).inside("a"), "root in slice a", false, false, true, false},
      {Caller::token("research", Role::viewer), "account research", true, false, false, false},
      {Caller::token("research", Role::user), "account research", true, true, false, false},
      {Caller::token("research", Role::operate), "account research", true, true, true, true},
      {Caller::token("", Role::user), "account ", false, false, false, false},
      {Caller().inside("a"), "anonymous", false, false, false, false},
      {Caller::token("research", Role::operate).inside("a"), "anonymous", false, false, false, false},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(row.caller.text(), row.text);
    EXPECT_EQ(row.caller.may_see(1000, "research"), row.sees_own) << row.text;
    EXPECT_EQ(row.caller.may_change(1000, "research"), row.changes_own) << row.text;
    EXPECT_EQ(row.caller.may_see(0, "operations"), row.sees_others) << row.text;
    EXPECT_EQ(row.caller.may_operate(), row.operates) << row.text;
    EXPECT_EQ(row.caller.cause().who, row.text);
    EXPECT_EQ(row.caller.cause().has_reserve, row.operates) << row.text;
  }
}

TEST(Caller, a_token_account_cannot_see_records_without_an_account) {
  EXPECT_FALSE(Caller::token("research", Role::user).may_see(1000));
  EXPECT_FALSE(Caller::token("", Role::user).may_see(1000, ""));
}

}  // namespace
}  // namespace carve::http
