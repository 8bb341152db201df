#include "core/commitment.h"

#include <gtest/gtest.h>

namespace carve {
namespace {

TEST(Commitment, is_tight_if_switches_need_the_rest_and_over_committed_above_100_percent) {
  const struct {
    uint64_t promised_bp, switch_ns;
    Commitment is;
  } rows[] = {
      {0, 100'000, Commitment::normal},
      {9700, 100'000, Commitment::normal},
      {9701, 100'000, Commitment::tight},  // 100 % - 100 us / 5 ms - 1 %
      {10000, 100'000, Commitment::tight},
      {10001, 100'000, Commitment::over_committed},
      {9701, 40'000, Commitment::tight},   // The quantum is 40 us / 2 % = 2 ms: 100 % - 2 % - 1 %.
      {9850, 10'000, Commitment::normal},  // The quantum is never below 2 ms: 100 % - 10 us / 2 ms - 1 %.
      {9851, 10'000, Commitment::tight},
      {9400, 1'000'000, Commitment::normal},  // The quantum is never above 20 ms: 100 % - 1 ms / 20 ms - 1 %.
      {9401, 1'000'000, Commitment::tight},
  };
  for (const auto& row : rows)
    EXPECT_EQ(commitment(row.promised_bp, row.switch_ns), row.is) << row.promised_bp << ' ' << row.switch_ns;
}

TEST(Commitment, a_quantum_limits_the_cost_of_switches_to_two_percent) {
  EXPECT_EQ(quantum_ns(100'000), 5'000'000u);
  EXPECT_EQ(quantum_ns(1'000), 2'000'000u);
  EXPECT_EQ(quantum_ns(10'000'000), 20'000'000u);
  EXPECT_EQ(comfortable(uint64_t{1} << 40).basis_points, 0u);
}

}  // namespace
}  // namespace carve
