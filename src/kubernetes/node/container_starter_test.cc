#include "kubernetes/node/container_starter.h"

#include <gmock/gmock.h>

#include "kubernetes/format/pod_slices.h"
#include "kubernetes/node/testing/agent_api_fake.h"

namespace carve::kubernetes::node {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ContainerStarterTest : public testing::Test {
 protected:
  static SeenPod pod(const std::string& uid) {
    SeenPod out;
    out.meta.name_space = "a";
    out.meta.name = "web-0";
    out.meta.uid = uid;
    out.node = "n1";
    out.meta.annotations[kubernetes::slices_annotation] =
        fmt::format(R"({{"v":1,"node":"n1","containers":{{"main":{{"parts":[["{}",1073741824,0]]}}}}}})",
                    AgentApiFake::uuid);
    return out;
  }

  Outcome<void> start() {
    ContainerStarter starter(
        agent, {.node = "n1",
                .list = [this]() -> Result<std::vector<ContainerDevices>, std::string> {
                  ++lists;
                  if (lists <= failing_lists) return tl::unexpected(std::string("rejected by rate limit"));
                  if (lists <= empty_lists) return std::vector<ContainerDevices>{};
                  return std::vector<ContainerDevices>{{{"a", "web-0", "main"}, slot_resource, {"s017"}}};
                },
                .pod = [this](const std::string&, const std::string&) { return answer; },
                .runtime = [this] { return runtime; },
                .granted = [this](const api::SliceRequest&,
                                  const api::Slice& slice) { granted.push_back(slice.name); },
                .refused =
                    [this](const std::optional<PodContainer>& whose, const std::string& message) {
                      refused.push_back((whose ? whose->name + ": " : "") + message);
                    },
                .look_for_orphans =
                    [this] {
                      ++orphan_checks;
                      if (orphan_checks == orphan_found_at) agent.refusals.clear();
                    },
                .now = [this] { return now; },
                .sleep = [this](int64_t ns) { now += ns; }});
    return starter.start({17}, [this] { return is_over; });
  }

  AgentApiFake agent;
  ContainerStarter::PodAnswer answer = std::optional(pod("u1"));
  RuntimeCapability runtime{.has_cdi = true, .message = ""};
  int lists = 0, failing_lists = 0, empty_lists = 0, orphan_checks = 0, orphan_found_at = -1;
  bool is_over = false;
  int64_t now = 0;
  std::vector<std::string> granted, refused;
};

TEST_F(ContainerStarterTest, retries_until_kubelet_reports_the_holder_of_the_slot) {
  failing_lists = 3;
  empty_lists = 5;
  ASSERT_TRUE(start());
  EXPECT_EQ(lists, 6);
  ASSERT_EQ(agent.asked.size(), 1u);
  EXPECT_EQ(agent.asked[0].holder->pod->uid, "u1");
  EXPECT_THAT(granted, ElementsAre("slice-1"));
  EXPECT_TRUE(refused.empty());
}

TEST_F(ContainerStarterTest, gives_up_before_kubelet_does) {
  empty_lists = 1 << 20;
  EXPECT_THAT(start().error().message, HasSubstr("kubelet reports no container for slot s017"));
  EXPECT_LE(now, max_start_ns);
  EXPECT_GT(now, max_start_ns / 2);
  EXPECT_EQ(refused.size(), 1u);
}

TEST_F(ContainerStarterTest, stops_when_kubelet_has_stopped_waiting) {
  empty_lists = 1 << 20;
  is_over = true;
  EXPECT_FALSE(start());
  EXPECT_EQ(lists, 1);
}

TEST_F(ContainerStarterTest, waits_for_the_previous_slice_and_looks_up_its_pod) {
  agent.refusals.assign(1000,
                        api::problem_of(FailureKind::failed_precondition, "slot s017 has the slice 'x'"));
  orphan_found_at = 4;
  ASSERT_TRUE(start());
  EXPECT_EQ(orphan_checks, 4);
  EXPECT_EQ(agent.asked.size(), 5u);
}

TEST_F(ContainerStarterTest, rejects_permanent_errors_immediately) {
  agent.refusals = {api::problem_of(FailureKind::already_exists, "the slice has other terms")};
  EXPECT_EQ(start().error().message, "the slice has other terms");
  EXPECT_THAT(refused, ElementsAre("web-0: the slice has other terms"));
  SeenPod bare = pod("u1");
  bare.meta.annotations.clear();
  answer = std::optional(bare);
  EXPECT_THAT(start().error().message, HasSubstr("was not placed by Carve"));
  EXPECT_EQ(now, 0);
}

TEST_F(ContainerStarterTest, starts_nothing_without_runtime_agent_or_pod) {
  runtime = {.is_known = false, .has_cdi = false, .message = "the container runtime has not answered yet"};
  EXPECT_EQ(start().error().message, "the container runtime has not answered yet");
  runtime.is_known = true;
  agent.is_gone = true;
  EXPECT_EQ(start().error().message, "no agent");
  agent.is_gone = false;
  answer = tl::unexpected(std::string("pod a/web-0 cannot be read"));
  EXPECT_EQ(start().error().message, "pod a/web-0 cannot be read");
  answer = std::optional<SeenPod>();
  EXPECT_THAT(start().error().message, HasSubstr("which is not on this node"));
  EXPECT_TRUE(agent.asked.empty());
}

}  // namespace
}  // namespace carve::kubernetes::node
