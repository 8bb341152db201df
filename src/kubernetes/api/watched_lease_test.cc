#include "kubernetes/api/watched_lease.h"

#include <gmock/gmock.h>

#include "kubernetes/api/testing/simulated_api_client.h"

namespace carve::kubernetes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* leases_path = "/apis/coordination.k8s.io/v1/leases";
constexpr const char* this_holder = "n1_6f1c9a52-0000-4000-8000-000000000000";
constexpr const char* other_holder = "n2_6f1c9a52-0000-4000-8000-000000000001";

struct Reader {
  VirtualTime time;
  ApiServerFake server;
  SimulatedApiClient client{time, server, 1};
  std::vector<bool> changes;
  WatchedLease lease{client, "/apis/coordination.k8s.io/v1/namespaces/s/leases/l", "n1",
                     [this](bool is_held) { changes.push_back(is_held); }};

  // Renews the Lease every 2 s.
  void renew_for(int seconds, const std::string& holder) {
    for (int i = 0; i < seconds; i += 2) {
      server.put(leases_path, {{"metadata", {{"name", "l"}, {"namespace", "s"}}},
                               {"spec",
                                {{"holderIdentity", holder},
                                 {"leaseDurationSeconds", 15},
                                 {"renewTime", std::to_string(time.now())}}}});
      time.run_for(2 * second_ns);
    }
  }
};

TEST(WatchedLease, reports_when_the_lease_is_held_and_when_it_is_not) {
  Reader reader;
  reader.time.run_for(3 * second_ns);
  EXPECT_FALSE(reader.lease.is_held());
  EXPECT_THAT(reader.lease.problem(), HasSubstr("status 404"));
  reader.renew_for(20, this_holder);
  EXPECT_TRUE(reader.lease.is_held());
  EXPECT_EQ(reader.lease.problem(), "");
  EXPECT_THAT(reader.changes, ElementsAre(true));
  reader.renew_for(4, other_holder);
  EXPECT_FALSE(reader.lease.is_held());
  EXPECT_THAT(reader.lease.problem(), HasSubstr("is held by n2_"));
  EXPECT_THAT(reader.changes, ElementsAre(true, false));
}

TEST(WatchedLease, without_a_server_the_lease_ends_10_s_after_the_last_renewal) {
  Reader reader;
  reader.renew_for(20, this_holder);
  reader.client.set_connected(false);
  reader.time.run_for(6 * second_ns);
  EXPECT_TRUE(reader.lease.is_held());
  EXPECT_THAT(reader.lease.problem(), HasSubstr("cannot connect"));
  reader.time.run_for(5 * second_ns);
  EXPECT_FALSE(reader.lease.is_held());
  EXPECT_THAT(reader.changes, ElementsAre(true, false));
  reader.client.set_connected(true);
  reader.renew_for(6, this_holder);
  EXPECT_TRUE(reader.lease.is_held());
}

TEST(WatchedLease, a_missing_response_delays_the_next_request_by_2_s) {
  Reader reader;
  reader.renew_for(10, this_holder);
  reader.server.add_fault({.kind = ApiFault::Kind::hang, .times = 2});
  reader.renew_for(10, this_holder);
  EXPECT_TRUE(reader.lease.is_held());
  EXPECT_THAT(reader.changes, ElementsAre(true));
}

}  // namespace
}  // namespace carve::kubernetes
