// Preparing claims, with an agent and an API server in memory and a virtual clock.
#include "kubernetes/node/dra/claim_preparer.h"

#include <gmock/gmock.h>

#include "kubernetes/node/dra/claim_reader.h"
#include "kubernetes/node/testing/agent_api_fake.h"
#include "wire/api/json_value.h"

namespace carve::kubernetes::node {
namespace {

using api::Json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class ClaimPreparerTest : public testing::Test {
 protected:
  static Json claim_object(const std::string& uid, const std::string& memory) {
    return {{"metadata", {{"namespace", "a"}, {"name", "web"}, {"uid", uid}}},
            {"status",
             {{"allocation",
               {{"devices",
                 {{"results",
                   {{{"request", "gpu"},
                     {"driver", "carve.dev"},
                     {"pool", "n1"},
                     {"device", "gpu-0"},
                     {"shareID", "s"},
                     {"consumedCapacity", {{"memory", memory}, {"compute", "0"}, {"slices", "1"}}}}}}}}}},
              {"reservedFor", {{{"resource", "pods"}, {"name", "web-0"}, {"uid", "u0"}}}}}}};
  }
  Result<std::vector<PreparedDevice>, std::string> prepare() {
    return preparer.prepare(name, now + max_prepare_ns, [this] { return is_over; });
  }
  static api::Problem no_room() {
    return {.type = shown(FailureKind::insufficient_capacity).type,
            .status = 409,
            .detail = "device 0: 4 GiB needed, 3 GiB free"};
  }

  AgentApiFake agent;
  ClaimPreparer::ClaimAnswer answer = std::optional(claim_object("0b6c", "4Gi").dump());
  const ClaimName name{"a", "web", "0b6c"};
  int64_t now = 0;
  bool is_over = false;
  std::vector<std::string> granted, refused;
  bool had_no_room = false;
  std::function<void()> while_waiting = [] {};
  ClaimPreparer preparer{
      agent,
      {.node = "n1",
       .claim = [this](const ClaimName&) { return answer; },
       .granted = [this](
                      const SeenClaim& claim,
                      const api::Slice& slice) { granted.push_back(claim.name.text() + " " + slice.name); },
       .refused =
           [this](const std::optional<SeenClaim>&, const std::string& message, bool has_no_room) {
             refused.push_back(message);
             had_no_room = has_no_room;
           },
       .now = [this] { return now; },
       .sleep =
           [this](int64_t ns) {
             now += ns;
             while_waiting();
           }}};
};

TEST_F(ClaimPreparerTest, a_claim_gets_a_slice_and_its_pods) {
  const auto devices = prepare();
  ASSERT_TRUE(devices) << devices.error();
  EXPECT_THAT(*devices, ElementsAre(PreparedDevice{"gpu", "n1", "gpu-0", "s", "carve.dev/claim=c-0b6c"}));
  ASSERT_THAT(agent.asked, SizeIs(1));
  EXPECT_EQ(agent.asked[0].placed[0].memory_bytes, 4ull << 30);
  EXPECT_EQ(agent.asked[0].holder->claim, "0b6c");
  EXPECT_THAT(agent.state.slices[0].pods, ElementsAre(ClaimPod{"a", "web-0", "u0"}));
  EXPECT_EQ(claim_of(agent.state.slices[0]), name);
  EXPECT_THAT(granted, ElementsAre("a/web slice-1"));
  EXPECT_EQ(now, 0);
}

TEST_F(ClaimPreparerTest, a_full_device_is_waited_for) {
  agent.refusals = {no_room(), no_room(), no_room()};
  EXPECT_TRUE(prepare());
  EXPECT_THAT(agent.asked, SizeIs(4));
  EXPECT_EQ(now, 350'000'000);
  EXPECT_THAT(refused, IsEmpty());
}

TEST_F(ClaimPreparerTest, after_40_seconds_the_ledgers_message_is_returned) {
  agent.refusals.assign(1000, no_room());
  const auto devices = prepare();
  ASSERT_FALSE(devices);
  EXPECT_EQ(devices.error(), "claim a/web: device 0: 4 GiB needed, 3 GiB free");
  EXPECT_THAT(refused, ElementsAre(devices.error()));
  EXPECT_TRUE(had_no_room);
  EXPECT_GT(now, 38'000'000'000);
  EXPECT_LE(now, max_prepare_ns);
}

TEST_F(ClaimPreparerTest, waiting_ends_with_kubelets_call) {
  agent.refusals.assign(1000, no_room());
  while_waiting = [this] { is_over = now > 1'000'000'000; };
  EXPECT_FALSE(prepare());
  EXPECT_LT(now, 3'000'000'000);
}

TEST_F(ClaimPreparerTest, a_claim_that_cannot_be_read_is_waited_for) {
  const auto readable =
      std::exchange(answer, tl::unexpected(std::string("claim a/web cannot be read: no connection")));
  while_waiting = [&] {
    if (now > 5'000'000'000) answer = readable;
  };
  EXPECT_TRUE(prepare());
  answer = tl::unexpected(std::string("claim a/web cannot be read: no connection"));
  while_waiting = [] {};
  EXPECT_THAT(prepare().error(), HasSubstr("no connection"));
}

TEST_F(ClaimPreparerTest, a_wrong_claim_is_rejected_immediately) {
  const std::pair<ClaimPreparer::ClaimAnswer, const char*> rows[] = {
      {std::optional<std::string>(), "claim a/web: there is no such claim"},
      {std::optional(claim_object("1111", "4Gi").dump()),
       "it was deleted and created again; its uid is 1111, not 0b6c"},
      {std::optional(claim_object("0b6c", "400Gi").dump()), "consumes 400 GiB of memory"},
      {std::optional<std::string>("]"), "a claim: "}};
  for (const auto& [claim, message] : rows) {
    answer = claim;
    EXPECT_THAT(prepare().error(), HasSubstr(message));
  }
  EXPECT_EQ(now, 0);
  EXPECT_THAT(agent.asked, IsEmpty());
}

TEST_F(ClaimPreparerTest, an_agent_that_restarts_is_waited_for) {
  agent.is_gone = true;
  while_waiting = [this] { agent.is_gone = now < 3'000'000'000; };
  EXPECT_TRUE(prepare());
}

TEST_F(ClaimPreparerTest, unpreparing_releases_the_slice_of_the_claim_only) {
  EXPECT_TRUE(preparer.unprepare(name)) << "an unknown claim is done";
  ASSERT_TRUE(prepare());
  api::Slice other = agent.state.slices[0];
  other.name = "other";
  other.holder->claim = "1111";
  agent.state.slices.push_back(other);
  EXPECT_TRUE(preparer.unprepare(name));
  EXPECT_TRUE(preparer.unprepare({"other", "name", "0b6c"})) << "the uid counts, not the name";
  EXPECT_THAT(agent.released, ElementsAre("slice-1", "slice-1"));
  agent.is_gone = true;
  EXPECT_THAT(preparer.unprepare(name).error(), HasSubstr("no agent"));
}

TEST(ClaimReader, distinguishes_a_missing_claim_from_a_failure) {
  const ClaimName name{"a", "web", "0b6c"};
  EXPECT_EQ(claim_target(name), "/apis/resource.k8s.io/v1/namespaces/a/resourceclaims/web");
  EXPECT_EQ(claim_target({"a", "../nodes", "0b6c"}), std::nullopt);
  EXPECT_EQ(claim_target({"a", std::string(254, 'w'), "0b6c"}), std::nullopt);
  EXPECT_EQ(*claim_answer(name, {.status = 200, .body = "{}"}), "{}");
  EXPECT_EQ(*claim_answer(name, {.status = 404, .body = R"({"kind":"Status","reason":"NotFound"})"}),
            std::nullopt);
  EXPECT_FALSE(claim_answer(name, {.status = 404, .body = "404 page not found", .problem = "404"}));
  EXPECT_FALSE(claim_answer(name, {.status = 0, .body = "", .problem = "no connection"}));
}

}  // namespace
}  // namespace carve::kubernetes::node
