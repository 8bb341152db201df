// The publisher of the ResourceSlice against an in-memory API server under virtual time.
#include "kubernetes/node/dra/resource_slice_publisher.h"

#include <gmock/gmock.h>

#include "kubernetes/api/testing/simulated_api_client.h"

namespace carve::kubernetes::node {
namespace {

using kubernetes::second_ns;
using nlohmann::json;

class ResourceSlicePublisherTest : public testing::Test {
 protected:
  ResourceSlicePublisherTest() {
    api::Device& device = input.agent.devices.emplace_back();
    device.uuid = "GPU-00000000-0000-0000-0000-000000000000";
    device.usable_bytes = 1ull << 30;
    device.max_slices = 16;
    publisher.release();
  }
  void want() { publisher.want(resource_slice(input)); }
  void set_health(HealthState state) {
    input.agent.devices[0].health.state = state;
    want();
  }
  const json* stored() { return server.find(resource_slices_path, "", "n1-carve-0"); }
  uint64_t generation() { return (*stored())["spec"]["pool"]["generation"]; }
  bool is_tainted() { return (*stored())["spec"]["devices"][0].contains("taints"); }

  ResourceSliceInput input{.node = "n1", .node_uid = "u"};
  kubernetes::VirtualTime time;
  kubernetes::ApiServerFake server;
  kubernetes::SimulatedApiClient client{time, server, 3};
  ResourceSlicePublisher publisher{client, "n1", 7};
};

TEST_F(ResourceSlicePublisherTest, writes_the_object_once) {
  time.run_for(5 * second_ns);
  EXPECT_EQ(stored(), nullptr) << "nothing is known yet";
  want();
  time.run_for(60 * second_ns);
  ASSERT_NE(stored(), nullptr);
  EXPECT_EQ(generation(), 1u);
  want();
  time.run_for(3600 * second_ns);
  EXPECT_EQ(publisher.writes(), 1u) << "the steady state writes nothing";
}

TEST_F(ResourceSlicePublisherTest, creates_a_deleted_object_again_within_two_seconds) {
  want();
  time.run_for(10 * second_ns);
  for (uint64_t round = 2; round < 5; ++round) {
    server.remove(resource_slices_path, "", "n1-carve-0");
    publisher.hold();  // kubelet has asked for the driver.
    publisher.release();
    time.run_for(2 * second_ns);
    ASSERT_NE(stored(), nullptr) << round;
    EXPECT_EQ(generation(), round);
  }
  // kubelet deletes it once more, a moment after it has registered the driver.
  publisher.release();
  time.run_for(second_ns / 2);
  server.remove(resource_slices_path, "", "n1-carve-0");
  time.run_for(2 * second_ns);
  EXPECT_NE(stored(), nullptr);
}

TEST_F(ResourceSlicePublisherTest, writes_nothing_until_kubelet_knows_the_driver) {
  publisher.hold();
  want();
  time.run_for(60 * second_ns);
  EXPECT_EQ(stored(), nullptr);
  publisher.release();
  time.run_for(2 * second_ns);
  ASSERT_NE(stored(), nullptr);
  publisher.hold();  // kubelet has restarted.
  server.remove(resource_slices_path, "", "n1-carve-0");
  time.run_for(60 * second_ns);
  EXPECT_EQ(stored(), nullptr);
  publisher.release();
  time.run_for(2 * second_ns);
  EXPECT_NE(stored(), nullptr);
}

TEST_F(ResourceSlicePublisherTest, updates_at_most_once_in_ten_seconds_and_the_last_state_wins) {
  want();
  time.run_for(20 * second_ns);
  for (int i = 0; i < 11; ++i) {
    set_health(i % 2 == 0 ? HealthState::xid : HealthState::ok);
    time.run_for(second_ns / 2);
  }
  EXPECT_EQ(publisher.writes(), 2u);
  EXPECT_TRUE(is_tainted()) << "the first change is written immediately";
  set_health(HealthState::ok);
  time.run_for(20 * second_ns);
  EXPECT_EQ(publisher.writes(), 3u);
  EXPECT_FALSE(is_tainted());
  EXPECT_EQ(generation(), 3u);
}

TEST_F(ResourceSlicePublisherTest, restores_an_object_that_another_program_has_changed) {
  want();
  time.run_for(20 * second_ns);
  json changed = *stored();
  changed["spec"]["devices"] = json::array();
  changed["spec"]["pool"]["generation"] = 0;
  server.put(resource_slices_path, changed);
  time.run_for(20 * second_ns);
  EXPECT_EQ((*stored())["spec"]["devices"].size(), 1u);
  EXPECT_EQ(generation(), 2u) << "higher than any generation that this program has written";
}

TEST_F(ResourceSlicePublisherTest, deletes_the_object_of_a_node_that_offers_nothing) {
  want();
  time.run_for(10 * second_ns);
  publisher.want(nullptr);
  time.run_for(10 * second_ns);
  EXPECT_EQ(stored(), nullptr);
  time.run_for(600 * second_ns);
  EXPECT_EQ(publisher.writes(), 2u);
  want();
  time.run_for(10 * second_ns);
  EXPECT_EQ(generation(), 2u);
}

TEST_F(ResourceSlicePublisherTest, survives_failures_of_the_api_server) {
  using Kind = kubernetes::ApiFault::Kind;
  for (const auto kind : {Kind::status, Kind::lose_request, Kind::lose_answer})
    for (const char* method : {"GET", "POST", "PUT"})
      server.add_fault(
          {.kind = kind, .method = method, .target = "resourceslices", .status = 503, .times = 1});
  want();
  time.run_for(120 * second_ns);
  ASSERT_NE(stored(), nullptr);
  set_health(HealthState::lost);
  time.run_for(120 * second_ns);
  EXPECT_TRUE(is_tainted());
  server.add_fault({.kind = Kind::status, .method = "PUT", .status = 409, .times = 2});
  set_health(HealthState::ok);
  time.run_for(120 * second_ns);
  EXPECT_FALSE(is_tainted());
}

}  // namespace
}  // namespace carve::kubernetes::node
