#include "sim/model/pool_chunks.h"
#include "sim/model/test_device.h"

#include <gtest/gtest.h>

#include <random>

namespace carve::sim {
namespace {

Reuse never(const LastUse&) { return Reuse::never; }
bool over(const LastUse&) { return true; }

TEST(Pool, requests_whole_chunks) {
  EXPECT_EQ(PoolBook::chunk_for(1), 32 * MiB);
  EXPECT_EQ(PoolBook::chunk_for(32 * MiB), 32 * MiB);
  EXPECT_EQ(PoolBook::chunk_for(32 * MiB + 1), 64 * MiB);
  PoolBook b;
  LastUse wait;
  EXPECT_FALSE(b.take(1, never, &wait));
  b.add_chunk(pool_chunk_bytes, pool_chunk_bytes);
  EXPECT_EQ(b.take(1, never, &wait), pool_chunk_bytes);
  EXPECT_EQ(b.take(513, never, &wait), pool_chunk_bytes + 512);
  EXPECT_EQ(b.used(), 512u + 1024u);
  EXPECT_FALSE(b.take(32 * MiB - 1024, never, &wait));
}

TEST(Pool, reuses_memory_immediately_in_its_own_stream_and_elsewhere_as_allowed) {
  PoolBook b;
  LastUse wait;
  b.add_chunk(pool_chunk_bytes, pool_chunk_bytes);
  const uint64_t p = *b.take(32 * MiB, never, &wait);
  EXPECT_TRUE(b.free(p, {7, 100}));
  EXPECT_FALSE(b.free(p, {7, 100}));
  EXPECT_FALSE(b.take(MiB, never, &wait));
  const auto own = [](const LastUse& u) { return u.stream == 7 ? Reuse::now : Reuse::never; };
  EXPECT_EQ(b.take(MiB, own, &wait), p);
  EXPECT_EQ(wait.stream, 0u);
  EXPECT_EQ(b.take(
                MiB, [](const LastUse&) { return Reuse::after_waiting; }, &wait),
            p + MiB);
  EXPECT_EQ(wait.stream, 7u);
  EXPECT_EQ(wait.sequence, 100u);
}

TEST(Pool, prefers_free_memory_to_memory_that_requires_a_wait) {
  PoolBook b;
  LastUse wait;
  b.add_chunk(pool_chunk_bytes, pool_chunk_bytes);
  b.add_chunk(pool_chunk_bytes * 4, pool_chunk_bytes);
  const uint64_t first = *b.take(32 * MiB, never, &wait);
  b.free(first, {7, 1});
  EXPECT_EQ(b.take(
                MiB, [](const LastUse&) { return Reuse::after_waiting; }, &wait),
            pool_chunk_bytes * 4);
  EXPECT_EQ(wait.stream, 0u);
}

TEST(Pool, releases_a_chunk_only_when_all_of_it_is_free_and_unused) {
  PoolBook b;
  LastUse wait;
  b.add_chunk(pool_chunk_bytes, pool_chunk_bytes);
  b.add_chunk(pool_chunk_bytes * 2, pool_chunk_bytes);  // Adjacent, but two chunks.
  const uint64_t a = *b.take(MiB, never, &wait), c = *b.take(MiB, never, &wait);
  b.free(a, {1, 1});
  EXPECT_EQ(b.release(UINT64_MAX, over)->base, pool_chunk_bytes * 2);
  EXPECT_FALSE(b.release(UINT64_MAX, over));
  b.free(c, {2, 5});
  EXPECT_FALSE(b.release(UINT64_MAX, [](const LastUse& u) { return u.stream == 1; }));
  EXPECT_FALSE(b.release(pool_chunk_bytes - 1, over));
  EXPECT_EQ(b.release(UINT64_MAX, over)->base, pool_chunk_bytes);
  EXPECT_EQ(b.reserved(), 0u);
  EXPECT_EQ(b.reserved_high, 2 * pool_chunk_bytes);
  EXPECT_EQ(b.used_high, 2 * MiB);
}

// A second record checks that pieces never overlap, that amounts agree, and that everything is released in
// the end.
TEST(Pool, never_returns_overlapping_pieces) {
  std::mt19937_64 r(5);
  PoolBook b;
  std::map<uint64_t, uint64_t> live;
  uint64_t next = pool_chunk_bytes, used = 0;
  for (int turn = 0; turn < 20'000; ++turn) {
    if (r() % 2 && !live.empty()) {
      auto it = std::next(live.begin(), static_cast<long>(r() % live.size()));
      ASSERT_TRUE(b.free(it->first, {1 + r() % 3, r() % 100}));
      used -= it->second;
      live.erase(it);
    } else if (live.size() < 200) {
      const uint64_t bytes = 1 + r() % (r() % 8 ? 100'000 : 40 * MiB);
      const uint64_t length = (bytes + 511) / 512 * 512;
      const auto judge = [&](const LastUse& u) { return static_cast<Reuse>((u.stream + u.sequence) % 3); };
      LastUse wait;
      auto at = b.take(bytes, judge, &wait);
      if (!at) {
        const uint64_t chunk = PoolBook::chunk_for(bytes);
        b.add_chunk(next, chunk);
        next += chunk;
        at = b.take(bytes, judge, &wait);
      }
      ASSERT_TRUE(at);
      const auto after = live.lower_bound(*at);
      const auto before = after == live.begin() ? live.end() : std::prev(after);
      ASSERT_TRUE(after == live.end() || *at + length <= after->first);
      ASSERT_TRUE(before == live.end() || before->first + before->second <= *at);
      live[*at] = length;
      used += length;
    }
    if (r() % 100 == 0) b.release(UINT64_MAX, [](const LastUse& u) { return u.sequence < 50; });
    ASSERT_EQ(b.used(), used);
    ASSERT_LE(b.used(), b.reserved());
  }
  for (const auto& [base, bytes] : live) b.free(base, {1, 99});
  while (b.release(UINT64_MAX, over)) {}
  EXPECT_EQ(b.reserved(), 0u);
}

}  // namespace
}  // namespace carve::sim
