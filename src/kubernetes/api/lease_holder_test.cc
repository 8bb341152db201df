#include "kubernetes/api/lease_holder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <optional>

#include "kubernetes/api/testing/simulated_api_client.h"

namespace carve::kubernetes {
namespace {

using FaultKind = ApiFault::Kind;
constexpr const char* leases = "/apis/coordination.k8s.io/v1/leases";

// A process with a Lease, which may be killed.
struct Replica {
  Replica(VirtualTime& time, ApiServerFake& server, const std::string& name, uint64_t seed)
      : client(time, server, seed) {
    lease.emplace(client,
                  LeaseHolder::Settings{.name_space = "carve-system",
                                        .name = "carve-controller",
                                        .identity = name,
                                        .time_text = [&time] { return fmt::format("{}", time.now()); }},
                  [this](bool is_held) { changes += is_held ? '+' : '-'; });
  }
  void kill() {
    client.forget_calls();
    lease.reset();
  }
  bool is_held() const { return lease && lease->is_held(); }

  SimulatedApiClient client;
  std::string changes;
  std::optional<LeaseHolder> lease;
};

struct Pair {
  VirtualTime time;
  ApiServerFake server;
  Replica a{time, server, "a", 1};
  Replica b{time, server, "b", 2};

  // Runs for a time, and counts the moments at which both may act.
  unsigned both_held(Nanoseconds length) {
    unsigned out = 0;
    for (Nanoseconds end = time.now() + length; time.now() < end; time.run_for(second_ns / 20))
      out += a.is_held() && b.is_held();
    return out;
  }
  // Returns the time until the replica holds the Lease.
  Nanoseconds until_held(const Replica& replica) {
    const Nanoseconds begin = time.now();
    while (!replica.is_held() && time.now() < begin + 60 * second_ns) time.run_for(second_ns / 20);
    return time.now() - begin;
  }
};

TEST(LeaseHolder, gives_the_lease_to_one_of_two_replicas) {
  Pair pair;
  EXPECT_EQ(pair.both_held(60 * second_ns), 0u);
  EXPECT_NE(pair.a.is_held(), pair.b.is_held());
  EXPECT_EQ(pair.a.changes + pair.b.changes, "+") << "a renewed Lease does not change hands";
}

TEST(LeaseHolder, takes_the_lease_of_a_dead_holder_within_10_s) {
  for (uint64_t round = 0; round < 20; ++round) {
    Pair pair;
    pair.time.run_for(5 * second_ns + round * second_ns / 20);
    Replica& dead = pair.a.is_held() ? pair.a : pair.b;
    Replica& other = pair.a.is_held() ? pair.b : pair.a;
    dead.kill();
    EXPECT_LE(pair.until_held(other), 10 * second_ns);
  }
}

TEST(LeaseHolder, takes_a_released_lease_with_the_next_poll) {
  Pair pair;
  pair.time.run_for(5 * second_ns);
  Replica& first = pair.a.is_held() ? pair.a : pair.b;
  Replica& other = pair.a.is_held() ? pair.b : pair.a;
  bool is_over = false;
  first.lease->release([&] { is_over = true; });
  EXPECT_FALSE(first.is_held());
  EXPECT_LE(pair.until_held(other), 3 * second_ns);
  EXPECT_TRUE(is_over);
  EXPECT_EQ(pair.both_held(20 * second_ns), 0u);
  EXPECT_FALSE(first.is_held());
}

TEST(LeaseHolder, stops_acting_before_another_replica_begins) {
  Pair pair;
  pair.time.run_for(5 * second_ns);
  Replica& cut = pair.a.is_held() ? pair.a : pair.b;
  Replica& other = pair.a.is_held() ? pair.b : pair.a;
  cut.client.set_connected(false);
  Nanoseconds ended = 0, began = 0;
  for (const Nanoseconds end = pair.time.now() + 30 * second_ns; pair.time.now() < end;
       pair.time.run_for(second_ns / 20)) {
    if (cut.is_held()) ended = pair.time.now();
    if (other.is_held() && began == 0) began = pair.time.now();
  }
  EXPECT_GT(began, ended + LeaseHolder::max_write_ns);
  cut.client.set_connected(true);
  EXPECT_EQ(pair.both_held(30 * second_ns), 0u);
  EXPECT_TRUE(other.is_held());
}

TEST(LeaseHolder, is_never_held_twice_under_faults) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Pair pair;
    std::mt19937_64 random(seed);
    for (unsigned step = 0; step < 60; ++step) {
      constexpr FaultKind kinds[] = {FaultKind::lose_request, FaultKind::lose_answer, FaultKind::hang,
                                     FaultKind::status};
      pair.server.add_fault({.kind = kinds[random() % 4],
                             .method = random() % 2 ? "PUT" : "",
                             .target = "leases",
                             .status = random() % 2 ? 409u : 500u,
                             .times = static_cast<unsigned>(1 + random() % 4)});
      EXPECT_EQ(pair.both_held(static_cast<Nanoseconds>(random() % 3 + 1) * second_ns), 0u) << seed;
    }
    pair.server.clear_faults();
    EXPECT_EQ(pair.both_held(20 * second_ns), 0u) << seed;
    EXPECT_NE(pair.a.is_held(), pair.b.is_held()) << seed;
    EXPECT_EQ(pair.server.all(leases).size(), 1u);
  }
}

}  // namespace
}  // namespace carve::kubernetes
