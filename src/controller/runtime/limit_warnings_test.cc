#include "controller/runtime/limit_warnings.h"

#include <gmock/gmock.h>

namespace carve::controller {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(LimitWarnings, name_each_limit_that_is_not_enforced_with_its_reason) {
  objects::ServiceSpec spec;
  const runner::LimitProblems problems{
      .cpu = "no right", .memory = "no hierarchy", .with_slice = "another cgroup"};
  EXPECT_THAT(limit_warnings(spec, problems), IsEmpty());
  spec.cpu.request = "1";
  EXPECT_THAT(limit_warnings(spec, problems), IsEmpty()) << "a request is not a limit";
  spec.cpu.limit = "2";
  spec.memory.limit = "1GiB";
  EXPECT_THAT(limit_warnings(spec, problems),
              ElementsAre("cpu limit: not enforced: no right", "memory limit: not enforced: no hierarchy"));
  EXPECT_THAT(limit_warnings(spec, {.with_slice = "another cgroup"}), IsEmpty());
  spec.gpu = objects::Gpu{.memory = "1GiB"};
  EXPECT_THAT(
      limit_warnings(spec, {.memory = "no hierarchy", .with_slice = "another cgroup"}),
      ElementsAre("cpu limit: not enforced: another cgroup", "memory limit: not enforced: no hierarchy"));
  spec.run.image = "models/llm:1";
  EXPECT_THAT(limit_warnings(spec, problems), IsEmpty());
}

}  // namespace
}  // namespace carve::controller
