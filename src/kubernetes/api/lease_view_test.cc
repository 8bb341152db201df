#include "kubernetes/api/lease_view.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <random>

namespace carve::kubernetes {
namespace {

using testing::HasSubstr;

const std::string uuid = "_6f1c9a52-0000-4000-8000-000000000000";

Lease lease(const std::string& holder, int renewal, unsigned seconds = 15) {
  return {.holder = holder,
          .renew_time = fmt::format("2026-01-01T00:00:{:02}.000000Z", renewal),
          .duration_seconds = seconds,
          .resource_version = "1"};
}

TEST(LeaseView, is_held_for_10_s_from_the_request_before_a_renewal) {
  LeaseView view("n1");
  EXPECT_FALSE(view.is_held(0));
  view.take(lease("n1" + uuid, 1), 1 * second_ns);
  EXPECT_FALSE(view.is_held(1 * second_ns)) << "the first renewal may be of any age";
  EXPECT_EQ(view.problem(), "no renewal of the Lease has been seen");
  view.take(lease("n1" + uuid, 2), 3 * second_ns);
  EXPECT_TRUE(view.is_held(3 * second_ns));
  EXPECT_EQ(view.problem(), "");
  EXPECT_TRUE(view.is_held(11 * second_ns - 1)) << "counted from the previous request";
  EXPECT_FALSE(view.is_held(11 * second_ns));
  view.take(lease("n1" + uuid, 2), 12 * second_ns);
  EXPECT_FALSE(view.is_held(12 * second_ns)) << "read again without a renewal";
  view.take(lease("n1" + uuid, 3), 13 * second_ns);
  EXPECT_TRUE(view.is_held(22 * second_ns - 1)) << "renewed after the request at 12 s";
  EXPECT_FALSE(view.is_held(22 * second_ns));
}

TEST(LeaseView, another_holder_ends_it_immediately) {
  const struct {
    std::string holder;
    const char* problem;
  } rows[] = {
      {"n2" + uuid, "the Lease is held by n2_6f1c9a52-0000-4000-8000-000000000000, not by this host (n1)"},
      {"n1-b" + uuid, "not by this host (n1)"},
      {"n1_x" + uuid, "not by this host (n1)"},
      {"n1", "not by this host (n1)"},
      {"", "the Lease has no holder"},
  };
  for (const auto& row : rows) {
    LeaseView view("n1");
    view.take(lease("n1" + uuid, 1), 0);
    view.take(lease("n1" + uuid, 2), 1);
    ASSERT_TRUE(view.is_held(2));
    view.take(lease(row.holder, 3), 2);
    EXPECT_FALSE(view.is_held(2)) << row.holder;
    EXPECT_THAT(view.problem(), HasSubstr(row.problem));
  }
}

TEST(LeaseView, ignores_a_late_response) {
  LeaseView view("n1");
  view.take(lease("n2" + uuid, 1), 0);
  view.take(lease("n2" + uuid, 2), 5 * second_ns);
  view.take(lease("n1" + uuid, 1), 3 * second_ns);
  EXPECT_FALSE(view.is_held(5 * second_ns));
}

TEST(LeaseView, does_not_trust_a_lease_that_is_too_short) {
  LeaseView view("n1");
  view.take(lease("n1" + uuid, 1, 12), 0);
  view.take(lease("n1" + uuid, 2, 12), 1);
  EXPECT_FALSE(view.is_held(2));
  EXPECT_EQ(view.problem(), "leaseDurationSeconds is 12; it must be at least 13 for a fence of 10 s");
}

constexpr Nanoseconds ms = second_ns / 1000;

// Two holders that follow client-go's rules on one Lease, each with a view that sees the Lease with a delay.
// Holders, reads and responses pause at random times.
class TwoHolders {
 public:
  explicit TwoHolders(uint64_t seed) : dice_(seed) {}

  void step() {
    now_ += 100 * ms;
    for (size_t i : {0, 1}) {
      elect(i);
      read(i);
      if (!machines_[i].view.is_held(now_)) continue;
      ++held;
      machines_[i].last_write = now_;
    }
  }
  std::string broken;  // The rule that was broken; empty if none was.
  uint64_t held = 0, changes = 0;

 private:
  struct Read {
    Lease lease;
    Nanoseconds sent, arrives;
  };
  struct Machine {
    LeaseView view;
    std::string seen;
    Nanoseconds seen_at = 0, next_try = 0, next_read = 0;
    Nanoseconds last_write = -60 * second_ns;  // Start of the last write that the view allowed.
    std::vector<Read> reads = {};
  };

  Nanoseconds up_to(int64_t most_ms) { return static_cast<Nanoseconds>(dice_() % most_ms) * ms; }

  void elect(size_t i) {
    Machine& machine = machines_[i];
    if (now_ < machine.next_try) return;
    const std::string name = fmt::format("n{}{}", i, uuid), state = stored_.holder + stored_.renew_time;
    if (state != machine.seen) {
      machine.seen = state;
      machine.seen_at = now_;
    }
    const bool is_over = stored_.holder.empty() || machine.seen_at + 15 * second_ns < now_;
    if (stored_.holder != name && is_over) {
      ++changes;
      const Nanoseconds last_write = machines_[1 - i].last_write;
      if (last_write + max_fenced_write_ns >= now_)
        broken = fmt::format("a write of {} ms, the next holder at {} ms", last_write / ms, now_ / ms);
    }
    if (stored_.holder == name || is_over)
      stored_ = {
          .holder = name, .renew_time = std::to_string(now_), .duration_seconds = 15, .resource_version = ""};
    machine.next_try = now_ + (dice_() % 40 == 0 ? up_to(40'000) : 2 * second_ns);
  }
  void read(size_t i) {
    Machine& machine = machines_[i];
    if (now_ >= machine.next_read) {
      machine.reads.push_back({stored_, now_ - up_to(900), now_ + up_to(9000)});
      machine.next_read = now_ + lease_poll_ns + (dice_() % 30 == 0 ? up_to(20'000) : 0);
    }
    for (const Read& read : machine.reads)
      if (read.arrives <= now_) machine.view.take(read.lease, read.sent);
    std::erase_if(machine.reads, [&](const Read& read) { return read.arrives <= now_; });
  }

  std::mt19937_64 dice_;
  Nanoseconds now_ = 0;
  Lease stored_;
  Machine machines_[2] = {{.view = LeaseView("n0"), .seen = ""}, {.view = LeaseView("n1"), .seen = ""}};
};

TEST(LeaseView, a_write_that_it_allows_ends_before_the_next_holder_starts) {
  uint64_t held = 0, changes = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    TwoHolders holders(seed);
    for (int i = 0; i < 2000; ++i) holders.step();
    ASSERT_EQ(holders.broken, "") << "seed " << seed;
    held += holders.held;
    changes += holders.changes;
  }
  EXPECT_GT(held, 10'000u);
  EXPECT_GT(changes, 400u);
}

TEST(LeaseView, the_term_changes_whenever_the_lease_gets_a_holder) {
  LeaseView view("h1");
  EXPECT_EQ(view.term(), "");
  Lease lease{.holder = "h1_0b2c7c3e-1d1f-4c59-9f1a-2f5a3c1d7e01", .renew_time = "1", .duration_seconds = 15};
  view.take(lease, 0);
  EXPECT_EQ(view.term(), "") << "the Lease has no acquireTime";
  lease.acquire_time = "1";
  view.take(lease, 1);
  const std::string first = view.term();
  EXPECT_NE(first, "");
  lease.renew_time = "2";
  view.take(lease, 2);
  EXPECT_EQ(view.term(), first);
  lease.acquire_time = "3";
  view.take(lease, 3);
  EXPECT_NE(view.term(), first);
}

TEST(LeaseView, parses_a_lease) {
  const auto read = read_lease(
      R"({"kind":"Lease","metadata":{"name":"l","resourceVersion":"7"},"spec":{"holderIdentity":"n1_x",)"
      R"("leaseDurationSeconds":15,"renewTime":"2026-01-01T00:00:00.000000Z","leaseTransitions":3}})");
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(read->holder, "n1_x");
  EXPECT_EQ(read->duration_seconds, 15u);
  EXPECT_EQ(read->renew_time, "2026-01-01T00:00:00.000000Z");
  EXPECT_EQ(read->resource_version, "7");
  EXPECT_EQ(read_lease(R"({"kind":"Status"})").error(), "'Status' is not a Lease");
  EXPECT_EQ(read_lease(R"({"kind":)").error(), "a Lease: invalid JSON at byte 9");
  EXPECT_EQ(read_lease(R"({"kind":"Lease","spec":{"leaseDurationSeconds":-1}})")->duration_seconds, 0u);
  EXPECT_EQ(read_lease(R"({"kind":"Lease","spec":{"leaseDurationSeconds":1e99}})")->duration_seconds, 0u);
}

}  // namespace
}  // namespace carve::kubernetes
