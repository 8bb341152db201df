#include "fleet/mode_rule.h"

#include <gtest/gtest.h>

namespace carve::fleet {
namespace {

constexpr uint64_t gib = 1ull << 30;

// Returns the isolation that the request gets, or the rejection.
std::string granted(const Amounts& amounts, const NodeKind& kind) {
  const auto request = request_on(amounts, kind);
  if (!request) return fmt::format("{}: {}", request.error().rule, request.error().message);
  return std::string(text(request->isolated()));
}

TEST(ModeRule, each_mode_grants_what_it_provides) {
  const Amounts plain{.memory_bytes = gib}, shared{.memory_bytes = gib, .share_bp = 2000},
      none{.memory_bytes = gib, .isolation = Isolation::none},
      memory{.memory_bytes = gib, .isolation = Isolation::memory},
      both{.memory_bytes = gib, .share_bp = 2000, .isolation = Isolation::memory_and_compute};
  const std::pair<NodeMode, std::vector<std::string>> rows[] = {
      {NodeMode::memory_and_compute, {"memory", "memory+compute", "", "memory", "memory+compute"}},
      {NodeMode::memory, {"memory", "", "", "memory", ""}},
      {NodeMode::none, {"none", "", "none", "", ""}},
      {NodeMode::exclusive, {"", "", "", "", ""}}};
  for (const auto& [mode, expected] : rows) {
    size_t column = 0;
    for (const Amounts* amounts : {&plain, &shared, &none, &memory, &both}) {
      const std::string refused = fmt::format("other mode: the node's mode is {}", text(mode));
      const std::string& isolation = expected[column++];
      EXPECT_EQ(granted(*amounts, {.mode = mode}), isolation.empty() ? refused : isolation)
          << text(mode) << ", column " << column;
    }
    EXPECT_EQ(granted({.exclusive = true}, {.mode = mode}), "memory");
  }
}

TEST(ModeRule, a_node_with_one_policy_grants_this_policy) {
  const Amounts burst{.memory_bytes = gib, .share_bp = 2000, .policy = Policy::native_burst_share};
  EXPECT_EQ(granted(burst, {}),
            "other policy: it needs policy native-burst-share, but the node's effective policy is "
            "fixed-share");
  EXPECT_EQ(granted(burst, {.policy = Policy::native_burst_share}), "memory+compute");
  EXPECT_EQ(granted(burst, {.policy = {}}), "memory+compute") << "each slice has its own policy";
  EXPECT_EQ(request_on({.memory_bytes = gib}, {.policy = Policy::guaranteed_burst_share})->policy,
            Policy::guaranteed_burst_share);
  EXPECT_EQ(request_on({.memory_bytes = gib}, {.policy = {}})->policy, std::nullopt);
}

TEST(ModeRule, units_are_those_of_the_node) {
  const Amounts units{.memory_units = 3};
  const auto large = request_on(units, {}), small = request_on(units, {.unit = MemoryUnit::mib_128});
  EXPECT_EQ(std::get<PerDevice>(large->memory).memory, 3_GiB);
  EXPECT_EQ(std::get<PerDevice>(small->memory).memory, 384_MiB);
  EXPECT_EQ(small->memory_units, (MemoryUnits{3, MemoryUnit::mib_128}));
}

TEST(ModeRule, an_invalid_request_is_not_reported_as_a_mismatch) {
  EXPECT_EQ(granted({}, {}),
            "invalid request: the request has no memory; add an amount, such as 4GiB or 50%");
  EXPECT_EQ(granted({}, {.mode = NodeMode::exclusive}).substr(0, 16), "invalid request:");
  EXPECT_EQ(granted({.memory_bytes = gib, .memory_bp = 5000}, {}).substr(0, 16), "invalid request:");
  EXPECT_EQ(granted({.memory_bytes = gib, .spill_bytes = gib}, {.mode = NodeMode::none}).substr(0, 11),
            "other mode:");
  EXPECT_EQ(granted({.memory_bytes = gib, .spill_bytes = gib}, {}), "memory");
}

TEST(ModeRule, a_weight_reserves_nothing) {
  place::Fleet fleet;
  const NodeKind native{.policy = Policy::native_burst_share}, fixed;
  const Amounts shared{.memory_bytes = gib, .share_bp = 2000},
      parts{.parts = *parse_parts("8GiB:30%,4GiB:10%")};
  const auto shape = [&](const Amounts& amounts, const NodeKind& kind) {
    return shape_on(*request_on(amounts, kind), kind, fleet);
  };
  EXPECT_EQ(shape(shared, fixed).share, Share{2000});
  EXPECT_EQ(shape(shared, native).share, Share{});
  EXPECT_EQ(shape(parts, native).parts[0].share, Share{});
  EXPECT_FALSE(shape({.memory_bytes = gib}, native).best_effort);
  EXPECT_TRUE(shape({.memory_bytes = gib}, fixed).best_effort);
  EXPECT_EQ(shape(shared, fixed).kinds, uint64_t{1} << number_of(fixed));
}

}  // namespace
}  // namespace carve::fleet
