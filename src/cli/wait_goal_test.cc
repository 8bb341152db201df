// Tests what `carve wait --for` accepts, and when an object has reached it.
#include "cli/wait_goal.h"

#include <gtest/gtest.h>

#include "wire/api/json_value.h"

namespace carve::cli {
namespace {

bool reached(const char* goal, const char* object) {
  return is_reached(parse_wait_goal(goal).value(), api::parse(object).value());
}

TEST(WaitGoal, compares_conditions_without_regard_to_case) {
  const char* object =
      R"({"status": {"phase": "Stopped", "conditions": [{"type": "Progressing", "status": "True"}]}})";
  EXPECT_TRUE(reached("condition=Progressing", object));
  EXPECT_TRUE(reached("condition=progressing=true", object));
  EXPECT_FALSE(reached("condition=Progressing=False", object));
  EXPECT_FALSE(reached("condition=Other", object));
  EXPECT_FALSE(reached("condition=Ready", object));
  EXPECT_TRUE(reached("condition=Ready=False", object));
}

TEST(WaitGoal, derives_ready_complete_and_failed_from_the_phase) {
  EXPECT_TRUE(
      reached("condition=Ready",
              R"({"metadata": {"generation": 2}, "status": {"phase": "Running", "observedGeneration": 2}})"));
  EXPECT_FALSE(
      reached("condition=Ready",
              R"({"metadata": {"generation": 3}, "status": {"phase": "Running", "observedGeneration": 2}})"))
      << "the status is about an earlier spec";
  EXPECT_TRUE(reached("condition=Ready", R"({"status": {"state": "Running"}})")) << "a node";
  EXPECT_TRUE(reached("condition=Complete", R"({"status": {"phase": "Succeeded"}})"));
  EXPECT_TRUE(reached("condition=Failed", R"({"status": {"phase": "Failed"}})"));
  EXPECT_FALSE(reached("condition=Complete", R"({"status": {"phase": "Failed"}})"));
  EXPECT_FALSE(reached("condition=Ready", "{}"));
}

TEST(WaitGoal, compares_what_a_path_prints) {
  const char* object = R"({"status": {"phase": "Running", "ready": 2}})";
  EXPECT_TRUE(reached("jsonpath={.status.phase}=Running", object));
  EXPECT_TRUE(reached("jsonpath=.status.ready=2", object));
  EXPECT_FALSE(reached("jsonpath={.status.phase}=Stopped", object));
  EXPECT_TRUE(reached("jsonpath={.status.phase}", object)) << "any value";
  EXPECT_FALSE(reached("jsonpath={.status.other}", object));
}

TEST(WaitGoal, rejects_other_texts) {
  for (const char* bad : {"", "ready", "condition=", "condition==True", "condition=Ready=", "deleted",
                          "jsonpath=", "jsonpath={.a", "jsonpath={.a}=", "create"})
    EXPECT_FALSE(parse_wait_goal(bad)) << bad;
}

}  // namespace
}  // namespace carve::cli
