#include "controller/billing/gpu_hours.h"

#include <gtest/gtest.h>

#include <random>

namespace carve::controller {
namespace {

constexpr int64_t hour_s = 3600, started_s = 1'000'000;

ledger::Stamp stamp(int64_t s) { return {s * bill::second_ns, "boot", s * bill::second_ns}; }

ledger::UsageRecord record_of(uint64_t id, const std::string& account, int64_t from_s,
                              std::optional<int64_t> to_s) {
  ledger::UsageRecord r;
  r.id = id;
  r.slice.name = fmt::format("s{}", id);
  r.slice.account = account;
  SlicePart part{.memory = 4096_MiB, .share = {3000}, .usable = 22731_MiB, .model = "NVIDIA A10"};
  part.device.bytes[0] = 1;
  r.slice.parts = {part};
  r.from = stamp(from_s);
  if (to_s) r.to = stamp(*to_s);
  return r;
}

UsageRow row_of(const ledger::UsageRecord& record) {
  return usage_row("n1", 1, record, [](const std::string&) { return false; });
}

struct Scenario {
  GpuHours hours{started_s * bill::second_ns};
  bill::Tariffs tariffs;

  void count(const ledger::UsageRecord& record, int64_t now_s) {
    hours.count({row_of(record)}, tariffs, stamp(now_s));
  }
  std::string of(const std::string& account) const {
    for (const GpuHours::Sum& sum : hours.sums())
      if (sum.account == account) return bill::text(sum.gpu_hours);
    return "";
  }
};

// An A10 has 10 units, of which the slice has 30 %.
TEST(GpuHours, grow_with_an_open_record_until_it_ends) {
  Scenario s;
  s.count(record_of(1, "a", started_s, {}), started_s + hour_s);
  EXPECT_EQ(s.of("a"), "3.000000");
  s.count(record_of(1, "a", started_s, {}), started_s + 2 * hour_s);
  EXPECT_EQ(s.of("a"), "6.000000");
  s.count(record_of(1, "a", started_s, started_s + 3 * hour_s), started_s + 9 * hour_s);
  EXPECT_EQ(s.of("a"), "9.000000");
}

TEST(GpuHours, of_the_time_before_the_start_are_not_counted) {
  Scenario s;
  s.count(record_of(1, "a", started_s - hour_s, {}), started_s + hour_s);
  EXPECT_EQ(s.of("a"), "3.000000");
  s.count(record_of(2, "b", started_s - 2 * hour_s, started_s - hour_s), started_s + hour_s);
  EXPECT_EQ(s.of("b"), "");
}

TEST(GpuHours, of_a_record_that_arrives_late_are_counted_then) {
  Scenario s;
  s.count(record_of(1, "a", started_s + hour_s, started_s + 2 * hour_s), started_s + 100 * hour_s);
  EXPECT_EQ(s.of("a"), "3.000000");
}

TEST(GpuHours, share_one_sum_beyond_the_limit) {
  Scenario s;
  for (uint64_t i = 0; i < GpuHours::max_pairs + 50; ++i)
    s.count(record_of(i + 1, fmt::format("account-{}", i), started_s, started_s + hour_s),
            started_s + hour_s);
  EXPECT_EQ(s.hours.sums().size(), GpuHours::max_pairs + 1);
  EXPECT_EQ(s.of(GpuHours::rest), "150.000000");
  s.count(record_of(9'999, "account-0", started_s, started_s + hour_s), started_s + hour_s);
  EXPECT_EQ(s.of("account-0"), "6.000000") << "a known account keeps its sum";
}

TEST(GpuHours, never_decrease) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    Scenario s;
    std::map<std::string, __int128> before;
    int64_t now = started_s;
    for (int step = 0; step < 200; ++step) {
      now += random() % 600;
      const uint64_t id = random() % 8 + 1;
      const int64_t from = started_s - 1'000 + static_cast<int64_t>(id) * 500;
      s.count(record_of(id, fmt::format("a{}", id % 3), from, {}), std::max(now, from));
      for (const GpuHours::Sum& sum : s.hours.sums()) {
        EXPECT_GE(sum.gpu_hours, before[sum.account]);
        before[sum.account] = sum.gpu_hours;
      }
    }
  }
}

}  // namespace
}  // namespace carve::controller
