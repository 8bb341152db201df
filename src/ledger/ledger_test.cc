#include "ledger/ledger.h"

#include <gmock/gmock.h>

#include <random>

#include "ledger/testing/lost_byte.h"
#include "ledger/testing/store_fake.h"

namespace carve::ledger {
namespace {

using testing::HasSubstr;

Device device(unsigned index, Bytes native, Bytes reserved) {
  Device d;
  d.uuid.bytes[0] = static_cast<uint8_t>(index + 1);
  d.index = index;
  d.native = native;
  d.reserved = reserved;
  return d;
}

Slice holding(std::string name, std::vector<SlicePart> parts) {
  Slice a;
  a.name = std::move(name);
  a.parts = std::move(parts);
  return a;
}

const Stamp morning{1'000, "boot", 10};

struct Book {
  Ledger ledger;
  Book() {
    for (unsigned i = 0; i < 2; ++i) EXPECT_TRUE(ledger.apply(*ledger.see(device(i, 16_GiB, 1_GiB))));
  }
  Uuid uuid(unsigned i) { return device(i, {}, {}).uuid; }
  const Balance& balance(unsigned i) { return ledger.balances().at(uuid(i)); }
  Outcome<void> grant(const Slice& a) {
    const auto change = ledger.grant(a, morning);
    return change ? ledger.apply(*change) : tl::unexpected(change.error());
  }
  Outcome<void> end(std::string_view name) {
    const auto change = ledger.end(ledger.find(name)->id, morning, "its last process ended");
    return change ? ledger.apply(*change) : tl::unexpected(change.error());
  }
};

TEST(Ledger, allows_weights_but_not_promises_to_sum_to_more_than_a_device) {
  Book book;
  const auto with = [&](const char* name, Policy policy, uint32_t share) {
    Slice slice = holding(name, {{book.uuid(0), 1_GiB, {share}}});
    slice.policy = policy;
    return book.grant(slice);
  };
  ASSERT_TRUE(with("a", Policy::native_burst_share, 6000));
  ASSERT_TRUE(with("b", Policy::native_burst_share, 6000));
  EXPECT_EQ(book.balance(0).free_share, whole_device);
  ASSERT_TRUE(with("c", Policy::guaranteed_burst_share, 9000));
  EXPECT_EQ(book.balance(0).free_share.basis_points, 1000u);
  EXPECT_FALSE(with("d", Policy::fixed_share, 1001));
  EXPECT_TRUE(book.ledger.balanced());
  // A weight that becomes a promise must fit.
  Terms terms = terms_of(book.ledger.find("a")->slice);
  terms.policy = Policy::guaranteed_burst_share;
  EXPECT_FALSE(book.ledger.alter(book.ledger.find("a")->id, terms, morning));
  ASSERT_TRUE(book.end("c"));
  const auto change = book.ledger.alter(book.ledger.find("a")->id, terms, morning);
  ASSERT_TRUE(change);
  ASSERT_TRUE(book.ledger.apply(*change));
  EXPECT_EQ(book.balance(0).free_share.basis_points, 4000u);
}

TEST(Ledger, moves_bytes_from_free_to_the_holder_at_a_grant_and_back_at_the_end) {
  Book book;
  EXPECT_EQ(book.balance(0).free, 15_GiB);
  ASSERT_TRUE(book.grant(holding("a", {{book.uuid(0), 4_GiB, {3000}}})));
  EXPECT_EQ(book.balance(0).free, 11_GiB);
  EXPECT_EQ(book.balance(0).free_share.basis_points, 7000u);
  EXPECT_EQ(book.balance(1).free, 15_GiB);
  EXPECT_TRUE(book.ledger.balanced());
  ASSERT_TRUE(book.end("a"));
  EXPECT_EQ(book.balance(0).free, 15_GiB);
  EXPECT_EQ(book.ledger.ended().back().end_reason, "its last process ended");
  EXPECT_TRUE(book.ledger.balanced());
}

TEST(LedgerDeathTest, aborts_at_the_next_change_of_a_device_that_lost_a_byte) {
  Book book;
  LostByte lost(book.ledger, book.uuid(0));
  EXPECT_FALSE(book.ledger.balanced());
  EXPECT_TRUE(book.grant(holding("b", {{book.uuid(1), 4_GiB, {}}}))) << "the other device is balanced";
  EXPECT_DEATH((void)book.grant(holding("a", {{book.uuid(0), 4_GiB, {}}})),
               "ledger\\.cc:[0-9]+: .*apply.*: broken invariant: balanced\\(change\\)");
}

TEST(Ledger, never_over_commits) {
  Book book;
  ASSERT_TRUE(book.grant(holding("a", {{book.uuid(0), 15_GiB, {}}})));
  for (const auto& parts : std::vector<std::vector<SlicePart>>{
           {{book.uuid(0), 1_B, {}}},
           {{book.uuid(1), 16_GiB, {}}},
           {{book.uuid(1), 1_GiB, {10001}}},
           {{book.uuid(1), 1_GiB, {}},
            {book.uuid(0), 1_GiB, {}}},  // The second part does not fit, so neither is granted.
           {{book.uuid(1), 1_GiB, {}}, {book.uuid(1), 1_GiB, {}}},
           {{Uuid{}, 1_GiB, {}}}}) {
    EXPECT_FALSE(book.grant(holding("b", parts)));
    EXPECT_EQ(book.balance(1).free, 15_GiB);
  }
}

TEST(Ledger, moves_the_difference_and_keeps_the_old_terms_at_a_change_of_terms) {
  Book book;
  ASSERT_TRUE(book.grant(holding("a", {{book.uuid(0), 4_GiB, {3000}}, {book.uuid(1), 4_GiB, {3000}}})));
  ASSERT_TRUE(book.grant(holding("b", {{book.uuid(0), 4_GiB, {5000}}})));
  const uint64_t id = book.ledger.find("a")->id;
  const Terms was = terms_of(book.ledger.find("a")->slice);
  struct Row {
    Bytes memory;
    Share share;
    const char* refused;  // Empty if the change is accepted.
    Bytes free;           // Free bytes of device 0 afterwards.
    uint32_t free_share;
  };
  const Row rows[] = {
      {6_GiB, {3000}, "", 5_GiB, 2000},
      {12_GiB, {3000}, "device 0: 6 GiB more needed, 5 GiB free", 5_GiB, 2000},
      {11_GiB, {5000}, "", 0_GiB, 0},
      {11_GiB, {5001}, "device 0: 50.01% of its compute needed, 50% free", 0_GiB, 0},
      {1_GiB, {100}, "", 10_GiB, 4900},
  };
  size_t changes = 0;
  for (const Row& row : rows) {
    Terms terms = was;
    terms.memory = row.memory;
    terms.share = row.share;
    const auto change = book.ledger.alter(id, terms, {1'000 + static_cast<int64_t>(changes), "boot", 20});
    EXPECT_EQ(change ? "" : change.error().message, row.refused);
    if (change) {
      ASSERT_TRUE(book.ledger.apply(*change));
      ++changes;
      EXPECT_EQ(terms_of(book.ledger.find("a")->slice), terms);
    }
    EXPECT_EQ(book.balance(0).free, row.free);
    EXPECT_EQ(book.balance(0).free_share.basis_points, row.free_share);
    EXPECT_TRUE(book.ledger.balanced());
  }
  ASSERT_EQ(book.ledger.find("a")->periods.size(), changes);
  EXPECT_EQ(book.ledger.find("a")->periods[0].terms, was);
  ASSERT_TRUE(book.end("a"));
  EXPECT_EQ(book.ledger.ended().back().periods.size(), changes);
  EXPECT_EQ(book.balance(1).free, 15_GiB);
  EXPECT_FALSE(book.ledger.alter(id, was, morning)) << "the slice has ended";
}

TEST(Ledger, promises_compute_twice_only_if_allowed_and_releases_it_exactly) {
  Book book;
  const auto promise = [&](const char* name, uint32_t share) {
    const auto change =
        book.ledger.grant(holding(name, {{book.uuid(0), 1_GiB, {share}}}), morning, unlimited_shares);
    return change && book.ledger.apply(*change);
  };
  ASSERT_TRUE(promise("a", 8000));
  EXPECT_FALSE(book.grant(holding("b", {{book.uuid(0), 1_GiB, {2001}}})));
  ASSERT_TRUE(promise("b", 8000));
  EXPECT_EQ(book.balance(0).free_share.basis_points, 0u);
  EXPECT_FALSE(book.grant(holding("c", {{book.uuid(0), 1_GiB, {1}}})));
  ASSERT_TRUE(book.grant(holding("c", {{book.uuid(0), 1_GiB, {0}}}))) << "a slice without a share";
  ASSERT_TRUE(book.end("c"));
  EXPECT_TRUE(book.ledger.balanced());
  Terms less = terms_of(book.ledger.find("a")->slice);
  less.share = {7000};
  const auto change = book.ledger.alter(book.ledger.find("a")->id, less, morning);
  ASSERT_TRUE(change) << "a decrease is always possible";
  ASSERT_TRUE(book.ledger.apply(*change));
  ASSERT_TRUE(book.end("b"));
  EXPECT_EQ(book.balance(0).free_share.basis_points, 3000u);
  EXPECT_TRUE(book.ledger.balanced());
}

TEST(Ledger, rejects_a_decision_that_has_become_stale) {
  Book book;
  ASSERT_TRUE(book.grant(holding("a", {{book.uuid(0), 1_GiB, {4000}}})));
  Terms more = terms_of(book.ledger.find("a")->slice);
  more.share = {6000};
  const auto altered = book.ledger.alter(book.ledger.find("a")->id, more, morning);
  const auto granted = book.ledger.grant(holding("b", {{book.uuid(0), 1_GiB, {6000}}}), morning);
  ASSERT_TRUE(altered && granted) << "each change fits by itself";
  ASSERT_TRUE(book.ledger.apply(*altered));
  EXPECT_FALSE(book.ledger.apply(*granted));
  EXPECT_EQ(book.balance(0).free_share.basis_points, 4000u);
}

TEST(Ledger, rejects_changes_of_exclusive_slices) {
  Book book;
  Slice whole = holding("w", {{book.uuid(0), 15_GiB, {10000}}});
  whole.exclusive = true;
  ASSERT_TRUE(book.grant(whole));
  EXPECT_FALSE(book.ledger.alter(book.ledger.find("w")->id, {1_GiB, {1}}, morning));
}

TEST(Ledger, keeps_names_unique_among_live_slices_only) {
  Book book;
  ASSERT_TRUE(book.grant(holding("a", {{book.uuid(0), 1_GiB, {}}})));
  const auto again = book.grant(holding("a", {{book.uuid(0), 1_GiB, {}}}));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().kind, FailureKind::already_exists);
  ASSERT_TRUE(book.end("a"));
  EXPECT_TRUE(book.grant(holding("a", {{book.uuid(0), 1_GiB, {}}})));
}

TEST(Ledger, leaves_an_unchanged_amount_as_it_is_on_each_part) {
  Book book;
  ASSERT_TRUE(book.grant(holding("a", {{book.uuid(0), 4_GiB, {1000}}, {book.uuid(1), 1_GiB, {500}}})));
  const uint64_t id = book.ledger.find("a")->id;
  const auto alter = [&](const Terms& terms) {
    const auto change = book.ledger.alter(id, terms, morning);
    return change ? book.ledger.apply(*change) : tl::unexpected(change.error());
  };
  Terms terms = terms_of(book.ledger.find("a")->slice);
  terms.policy = Policy::guaranteed_burst_share;
  ASSERT_TRUE(alter(terms));
  const Slice& slice = book.ledger.find("a")->slice;
  EXPECT_EQ(slice.policy, Policy::guaranteed_burst_share);
  EXPECT_EQ(slice.parts[1].memory, 1_GiB);
  EXPECT_EQ(slice.parts[1].share, Share{500});
  EXPECT_EQ(book.balance(1).free, 14_GiB);
  terms.memory = 2_GiB;
  ASSERT_TRUE(alter(terms));
  EXPECT_EQ(slice.parts[0].memory, 2_GiB);
  EXPECT_EQ(slice.parts[1].memory, 2_GiB);
  EXPECT_EQ(slice.parts[1].share, Share{500});
  EXPECT_EQ(book.balance(1).free, 13_GiB);
}

TEST(Ledger, allows_only_one_live_slice_per_holder) {
  Book book;
  const auto of_pod = [&](const char* name, const char* uid, const char* container) {
    Slice slice = holding(name, {{book.uuid(0), 1_GiB, {}}});
    slice.holder.pod = PodContainer{"a", "web-0", uid, container};
    return book.grant(slice);
  };
  ASSERT_TRUE(of_pod("a", "u1", "main"));
  const auto second = of_pod("b", "u1", "main");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, FailureKind::already_exists);
  EXPECT_THAT(second.error().message, HasSubstr("pod a/web-0, container main already has the slice 'a'"));
  EXPECT_TRUE(of_pod("c", "u1", "sidecar"));
  EXPECT_TRUE(of_pod("d", "u2", "main"));
  EXPECT_TRUE(book.grant(holding("e", {{book.uuid(0), 1_GiB, {}}})));
  EXPECT_TRUE(book.grant(holding("f", {{book.uuid(0), 1_GiB, {}}})));
  EXPECT_EQ(book.ledger.find_by_holder({}), nullptr);
  ASSERT_TRUE(book.end("a"));
  EXPECT_TRUE(of_pod("b", "u1", "main"));
  EXPECT_EQ(book.ledger.find_by_holder(book.ledger.find("b")->slice.holder)->slice.name, "b");
}

TEST(Ledger, grants_a_repeated_request_only_once) {
  Book book;
  Slice a = holding("a", {{book.uuid(0), 1_GiB, {}}});
  a.request_id = "r1";
  ASSERT_TRUE(book.grant(a));
  ASSERT_TRUE(book.grant(a));
  EXPECT_EQ(book.balance(0).free, 14_GiB);
  EXPECT_EQ(book.ledger.living().size(), 1u);
  Slice of_another_owner = a;
  of_another_owner.owner = 7;
  of_another_owner.name = "b";
  ASSERT_TRUE(book.grant(of_another_owner));
  EXPECT_EQ(book.ledger.living().size(), 2u);
  ASSERT_TRUE(book.end("a"));
  const auto late = book.grant(a);
  ASSERT_FALSE(late);
  EXPECT_THAT(late.error().message, HasSubstr("has ended"));
}

TEST(Ledger, lets_a_larger_reserve_wait_until_slices_end) {
  Book book;
  ASSERT_TRUE(book.grant(holding("a", {{book.uuid(0), 14_GiB, {}}})));
  ASSERT_TRUE(book.ledger.apply(*book.ledger.see(device(0, 16_GiB, 4_GiB))));
  EXPECT_EQ(book.balance(0).reserved, 2_GiB);
  EXPECT_EQ(book.balance(0).free, 0_GiB);
  EXPECT_TRUE(book.ledger.balanced());
  ASSERT_TRUE(book.end("a"));
  EXPECT_EQ(book.balance(0).reserved, 4_GiB);
  EXPECT_EQ(book.balance(0).free, 12_GiB);
  ASSERT_TRUE(book.grant(holding("b", {{book.uuid(0), 12_GiB, {}}})));
  EXPECT_FALSE(book.ledger.see(device(0, 11_GiB, 1_GiB)));
  EXPECT_FALSE(book.ledger.see(device(0, 1_GiB, 2_GiB)));
}

TEST(Duration, uses_the_monotonic_clock_within_a_boot_and_utc_across_boots) {
  // A step of UTC has no effect within a boot.
  EXPECT_EQ(duration_ns({5'000, "a", 100}, {9'000, "a", 150}), 50);
  EXPECT_EQ(duration_ns({9'000, "a", 100}, {5'000, "a", 150}), 50);
  EXPECT_EQ(duration_ns({5'000, "a", 100}, {9'000, "b", 10}), 4'000);
  EXPECT_EQ(duration_ns({9'000, "a", 100}, {5'000, "b", 10}), 0);
}

std::string written(const Ledger& ledger) {
  std::string out;
  for (const auto& [uuid, b] : ledger.balances())
    out += fmt::format("{} {} {} {} {};", text(uuid), b.reserved.count, b.free.count,
                       b.free_share.basis_points, b.held.size());
  for (const auto& [id, record] : ledger.living()) out += fmt::format("{} {};", id, record.slice.name);
  std::map<uint64_t, UsageRecord> ended;
  for (const UsageRecord& record : ledger.ended()) ended.emplace(record.id, record);
  for (const auto& [id, record] : ended)
    out += fmt::format("{} {} {};", record.id, record.slice.name, record.end_reason);
  return out;
}

TEST(Ledger, stays_balanced_in_random_histories_with_crashes_at_every_step) {
  std::mt19937 dice(7);
  for (int history = 0; history < 60; ++history) {
    Memory store;
    Ledger ledger;
    for (unsigned i = 0; i < 3; ++i) ASSERT_TRUE(post(ledger, store, *ledger.see(device(i, 16_GiB, 1_GiB))));
    for (int step = 0; step < 120; ++step) {
      store.full = dice() % 10 == 0;
      const std::string before = written(ledger);
      Outcome<Change> change = failure(FailureKind::invalid_argument, "nothing");
      const unsigned action = dice() % 10;
      if (action < 5) {
        Slice a = holding(fmt::format("t{}", dice() % 12), {});
        a.request_id = dice() % 3 ? "" : fmt::format("r{}", dice() % 8);
        for (unsigned i = 0; i < 3; ++i)
          if (dice() % 2)
            a.parts.push_back({device(i, {}, {}).uuid,
                               Bytes{(dice() % 8192 + 1ull) << 20},
                               {static_cast<uint32_t>(dice() % 5 * 1000)}});
        change = ledger.grant(a, morning);
      } else if (action < 9) {
        change = ledger.end(dice() % 40, morning, "ended");
      } else {
        change = ledger.see(device(dice() % 3, 16_GiB, Bytes{dice() % 4 << 30}));
      }
      if (change && !post(ledger, store, *change)) {
        EXPECT_TRUE(store.full);
        ASSERT_EQ(written(ledger), before) << "a refused change changed the ledger";
      }
      ASSERT_TRUE(ledger.balanced());
      if (dice() % 8 == 0) {  // The agent is killed here, and the next one reads the store.
        const Ledger again = reread(store);
        ASSERT_EQ(written(again), written(ledger));
        ASSERT_TRUE(again.balanced());
        ledger = again;
      }
    }
  }
}

}  // namespace
}  // namespace carve::ledger
