#include "node/doctor.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "node/agent/testing/agent_fake.h"

namespace carve::node {
namespace {

// Returns the row of the kernel guard, with the memory level of the diagnosis.
std::pair<api::Check, EnforcementLevel> guard_row(const GuardStatus& guard) {
  AgentFake agent;
  agent.has_node.guard = guard;
  const api::Diagnosis out = diagnose(agent, {});
  const auto row = std::ranges::find(out.checks, "kernel guard", &api::Check::name);
  EXPECT_NE(row, out.checks.end());
  return {*row, out.memory};
}

GuardStatus library(const char* reason, bool is_expected) {
  return {.memory = {enforced_by_guest, reason, {}}, .hook = "", .is_expected = is_expected, .slices = 0};
}

TEST(doctor, shows_a_guard_in_force_with_its_slices) {
  const auto [row, level] = guard_row({.memory = {EnforcementLevel::kernel, "", {}},
                                       .hook = "by the security module bpf",
                                       .is_expected = true,
                                       .slices = 1});
  EXPECT_EQ(row.status, CheckStatus::ok);
  EXPECT_EQ(row.detail, "in force, attached by the security module bpf; it protects 1 slice");
  EXPECT_EQ(row.fix, "");
  EXPECT_EQ(level, EnforcementLevel::kernel);
}

TEST(doctor, shows_why_there_is_no_guard) {
  const auto [row, level] = guard_row(library("the agent does not run as root", false));
  EXPECT_EQ(row.status, CheckStatus::degraded);
  EXPECT_EQ(
      row.detail,
      "the guest library enforces memory limits, and a hostile program can bypass it: the agent does not "
      "run as root");
  EXPECT_NE(row.fix, "");
  EXPECT_EQ(level, EnforcementLevel::library);
}

TEST(doctor, a_guard_that_the_options_or_devices_rule_out_is_no_problem) {
  const auto [row, level] = guard_row(library("simulated devices have no kernel driver", true));
  EXPECT_EQ(row.status, CheckStatus::ok);
  EXPECT_TRUE(row.detail.ends_with(": simulated devices have no kernel driver"));
  EXPECT_EQ(level, EnforcementLevel::library);
}

std::string operators_row(const Operators& operators) {
  const AgentFake agent;
  const api::Diagnosis out = diagnose(agent, operators);
  const auto row = std::ranges::find(out.checks, "operators", &api::Check::name);
  EXPECT_NE(row, out.checks.end());
  EXPECT_EQ(row->status, CheckStatus::ok);
  return row->detail;
}

TEST(doctor, shows_whether_the_operators_group_exists) {
  EXPECT_EQ(operators_row({.uids = {0}, .group = "gpu", .gid = 70}),
            "root, the agent's user and the members of the group gpu (gid 70)");
  EXPECT_NE(operators_row({.uids = {0}, .group = "gpu"}).find("there is no group gpu"), std::string::npos);
  EXPECT_EQ(operators_row({.uids = {0}, .group = ""}),
            "root and the agent's user (carved --operators-group none)");
}

}  // namespace
}  // namespace carve::node
