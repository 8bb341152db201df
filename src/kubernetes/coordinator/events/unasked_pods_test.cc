#include "kubernetes/coordinator/events/unasked_pods.h"

#include <gmock/gmock.h>

namespace carve::kubernetes::coordinator {
namespace {

using kubernetes::second_ns;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(UnaskedPods, a_pod_is_due_if_the_scheduler_does_not_send_it) {
  UnaskedPods pods;
  EXPECT_THAT(pods.due({"a", "b"}, second_ns), IsEmpty()) << "both pods are new";
  pods.asked("a", 2 * second_ns);
  EXPECT_THAT(pods.due({"a", "b"}, 11 * second_ns), ElementsAre("b"));
  EXPECT_THAT(pods.due({"a", "b"}, 21 * second_ns), IsEmpty());
  EXPECT_THAT(pods.due({"a", "b"}, 71 * second_ns), ElementsAre("b"));
  EXPECT_THAT(pods.due({"a"}, 602 * second_ns), ElementsAre("a"));
  EXPECT_THAT(pods.due({"b"}, 603 * second_ns), IsEmpty()) << "the pod is new again";
  EXPECT_EQ(pods.pods(), 1u) << "a is bound or gone";
}

TEST(UnaskedPods, a_round_is_limited_and_the_next_one_continues) {
  UnaskedPods pods;
  std::vector<std::string> many;
  for (size_t i = 0; i < max_looks + 1; ++i) many.push_back(std::to_string(100 + i));
  pods.due(many, second_ns);
  EXPECT_EQ(pods.due(many, 20 * second_ns).size(), max_looks);
  EXPECT_THAT(pods.due(many, 30 * second_ns), ElementsAre(many.back()));
}

}  // namespace
}  // namespace carve::kubernetes::coordinator
