#include "kubernetes/coordinator/snapshot/request_on.h"

#include <gtest/gtest.h>

namespace carve::kubernetes::coordinator {
namespace {

constexpr fleet::NodeKind default_kind{};
constexpr fleet::NodeKind kind_of(NodeMode mode) { return {.mode = mode, .is_mode_named = true}; }

std::string isolation_on(const Amounts& asked, const fleet::NodeKind& kind, const char* dialect = "carve") {
  const auto request = request_on({.amounts = asked, .unit = {}, .units = {}}, dialect, kind);
  return request ? std::string(text(request->isolated())) : request.error().message;
}

// A request without an isolation gets that of the node's mode.
TEST(RequestOn, a_request_takes_the_nodes_mode) {
  const Amounts memory{.memory_bytes = 2ull << 30}, both{.memory_bytes = 2ull << 30, .share_bp = 3000};
  EXPECT_EQ(isolation_on(memory, default_kind), "memory");
  EXPECT_EQ(isolation_on(memory, kind_of(NodeMode::memory)), "memory");
  EXPECT_EQ(isolation_on(memory, kind_of(NodeMode::none)), "none");
  EXPECT_EQ(isolation_on(memory, kind_of(NodeMode::exclusive)), "the node's mode is exclusive");
  EXPECT_EQ(isolation_on(both, default_kind), "memory+compute");
  EXPECT_EQ(isolation_on(both, kind_of(NodeMode::memory)), "the node's mode is memory");
  EXPECT_EQ(isolation_on(both, kind_of(NodeMode::none)), "the node's mode is none");
}

TEST(RequestOn, unequal_parts_take_the_nodes_mode) {
  const Amounts memory{.parts = *parse_parts("8GiB,4GiB")}, both{.parts = *parse_parts("8GiB:30%,4GiB:10%")};
  EXPECT_EQ(isolation_on(memory, default_kind), "memory");
  EXPECT_EQ(isolation_on(memory, kind_of(NodeMode::none)), "none");
  EXPECT_EQ(isolation_on(both, default_kind), "memory+compute");
  EXPECT_EQ(isolation_on(both, kind_of(NodeMode::memory)), "the node's mode is memory");
  EXPECT_EQ(isolation_on(both, kind_of(NodeMode::none)), "the node's mode is none");
}

TEST(RequestOn, a_requested_isolation_selects_nodes_that_provide_it) {
  Amounts asked{.memory_bytes = 2ull << 30, .isolation = Isolation::none};
  EXPECT_EQ(isolation_on(asked, kind_of(NodeMode::none)), "none");
  EXPECT_EQ(isolation_on(asked, default_kind), "the node's mode is memory-and-compute");
  EXPECT_EQ(isolation_on(asked, kind_of(NodeMode::memory)), "the node's mode is memory");
  asked.isolation = Isolation::memory;
  EXPECT_EQ(isolation_on(asked, kind_of(NodeMode::none)), "the node's mode is none");
  EXPECT_EQ(isolation_on(asked, default_kind), "memory");
}

// An ACK request for only memory is rejected by a node whose label promises memory and compute, and accepted
// by a node with the default.
TEST(RequestOn, an_ack_request_for_only_memory_avoids_nodes_that_promise_compute) {
  const Amounts memory{.memory_bytes = 2ull << 30};
  EXPECT_EQ(isolation_on(memory, default_kind, "ack"), "memory");
  EXPECT_EQ(isolation_on(memory, kind_of(NodeMode::memory_and_compute), "ack"),
            "the node's mode is memory-and-compute");
  EXPECT_EQ(isolation_on(memory, kind_of(NodeMode::memory), "ack"), "memory");
  const Amounts both{.memory_bytes = 2ull << 30, .share_bp = 500};
  EXPECT_EQ(isolation_on(both, kind_of(NodeMode::memory_and_compute), "ack"), "memory+compute");
}

TEST(RequestOn, a_node_with_another_policy_is_rejected) {
  const Amounts asked{.memory_bytes = 2ull << 30, .share_bp = 3000, .policy = Policy::native_burst_share};
  EXPECT_EQ(isolation_on(asked, default_kind),
            "it needs policy native-burst-share, but the node's effective policy is fixed-share");
  EXPECT_EQ(isolation_on(asked, {.policy = Policy::native_burst_share}), "memory+compute");
}

TEST(RequestOn, whole_devices_fit_every_mode) {
  Amounts whole{.devices = 2};
  whole.exclusive = true;
  whole.spill_bytes = 1 << 30;  // Has no effect.
  for (const NodeMode mode :
       {NodeMode::memory_and_compute, NodeMode::memory, NodeMode::none, NodeMode::exclusive}) {
    const auto request = request_on({.amounts = whole, .unit = {}, .units = {}}, "carve", kind_of(mode));
    ASSERT_TRUE(request) << request.error().message;
    EXPECT_TRUE(request->exclusive);
    EXPECT_EQ(request->devices, 2u);
  }
}

TEST(RequestOn, units_and_parts_are_kept) {
  const auto units = request_on({.amounts = {.memory_bytes = 2ull << 30}, .unit = 128ull << 20, .units = 16},
                                "ack", default_kind);
  ASSERT_TRUE(units) << units.error().message;
  EXPECT_EQ(units->memory_units, (MemoryUnits{16, MemoryUnit::mib_128}));
  const auto part =
      request_on({.amounts = {.memory_bp = 5000}, .unit = {}, .units = {}}, "hami", default_kind);
  ASSERT_TRUE(part) << part.error().message;
  EXPECT_EQ(std::get<OfUsable>(part->memory).part, Share{5000});
  EXPECT_FALSE(request_on({}, "carve", default_kind)) << "it requests no memory";
}

}  // namespace
}  // namespace carve::kubernetes::coordinator
