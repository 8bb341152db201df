#include "sim/model/memory.h"

#include <gtest/gtest.h>

#include "sim/model/test_device.h"

namespace carve::sim {
namespace {

TEST(Memory, free_memory_excludes_reserve_contexts_and_blocks) {
  TestDevice d;
  EXPECT_EQ(free_bytes(*d), 960 * MiB);
  const unsigned a = d.open();
  EXPECT_EQ(free_bytes(*d), 896 * MiB);
  EXPECT_EQ(take(*d, a, 896 * MiB), Refusal::none);
  EXPECT_EQ(free_bytes(*d), 0u);
  EXPECT_EQ(take(*d, a, 2 * MiB), Refusal::no_memory);
  give(*d, a, 2 * MiB);
  EXPECT_EQ(take(*d, a, 2 * MiB), Refusal::none);
}

TEST(Memory, of_a_context_that_does_not_fit_is_not_taken) {
  TestDevice d;
  const unsigned a = d.open();
  take(*d, a, 896 * MiB);
  unsigned index = 0;
  EXPECT_EQ(open_context(*d, 1, 1, d.now, &index), Refusal::no_memory);
  close_context(*d, a, d.now);
  EXPECT_EQ(free_bytes(*d), 960 * MiB);
}

TEST(Memory, for_the_sixty_fifth_context_is_refused_until_a_context_is_closed) {
  TestDevice d;
  d->facts.context_bytes = 2 * MiB;
  for (unsigned i = 0; i < max_contexts; ++i) EXPECT_EQ(d.open(), i);
  unsigned index = 0;
  EXPECT_EQ(open_context(*d, 1, 1, d.now, &index), Refusal::no_slot);
  close_context(*d, 17, d.now);
  EXPECT_EQ(open_context(*d, 1, 1, d.now, &index), Refusal::none);
  EXPECT_EQ(index, 17u);
}

TEST(Memory, a_closed_context_frees_the_engines_for_the_others) {
  TestDevice d;
  const unsigned a = d.open(), b = d.open();
  d.kernel(a, 1, 1'000'000'000'000);
  d.push(a, 2, OpKind::to_device, 1'000'000'000'000);
  const uint64_t kernel = d.kernel(b, 1, 1'000'000), copy = d.push(b, 2, OpKind::to_device, 1'000'000);
  d.at(500'000);
  close_context(*d, a, d.now);
  d.at(2'000'000);
  EXPECT_TRUE(complete(*d, b, 1, kernel));
  EXPECT_TRUE(complete(*d, b, 2, copy));
}

TEST(Memory, of_a_client_without_a_context_is_held_until_it_is_dropped) {
  TestDevice d;
  EXPECT_EQ(take_for(*d, 70, 5, 100 * MiB), Refusal::none);
  EXPECT_EQ(take_for(*d, 71, 1, 861 * MiB), Refusal::no_memory);
  EXPECT_EQ(take_for(*d, 71, 1, 860 * MiB), Refusal::none);
  EXPECT_EQ(free_bytes(*d), 0u);
  give_for(*d, 71, 2, 860 * MiB);  // The slot's generation has changed.
  EXPECT_EQ(free_bytes(*d), 0u);
  give_for(*d, 71, 1, 60 * MiB);
  EXPECT_EQ(held_bytes(*d, 71, 1), 800 * MiB);
  drop_holding(*d, 70);
  EXPECT_EQ(free_bytes(*d), 160 * MiB);
  EXPECT_EQ(take_for(*d, 70, 6, 2 * MiB), Refusal::none);  // A new client in the slot starts at zero.
  EXPECT_EQ(held_bytes(*d, 70, 6), 2 * MiB);
  EXPECT_EQ(held_bytes(*d, 70, 5), 0u);
}

TEST(Memory, of_a_segment_is_counted_once_and_passes_to_the_next_holder) {
  TestDevice d;
  unsigned i = 9;
  take_for(*d, 1, 1, 100 * MiB);
  ASSERT_TRUE(open_segment(*d, 1, 1, 100 * MiB, &i));
  give_for(*d, 1, 1, 100 * MiB);
  EXPECT_EQ(free_bytes(*d), 860 * MiB);
  join_segment(*d, i, 2, 1);
  join_segment(*d, i, 2, 1);
  EXPECT_EQ(free_bytes(*d), 860 * MiB);
  leave_segment(*d, i, 1, 1);
  EXPECT_EQ(d->segments[i].holders[0].client, 2u);
  EXPECT_EQ(d->segments[i].holders[1].in_use, 0u);
  const uint64_t serial = d->segments[i].serial;
  close_segment(*d, i);
  EXPECT_EQ(free_bytes(*d), 960 * MiB);
  ASSERT_TRUE(open_segment(*d, 1, 1, 2 * MiB, &i));
  EXPECT_GT(d->segments[i].serial, serial);
  for (unsigned n = 1; n < max_segments; ++n) ASSERT_TRUE(open_segment(*d, 1, 1, 0, &i));
  EXPECT_FALSE(open_segment(*d, 1, 1, 0, &i));
}

TEST(Memory, managed_memory_uses_free_memory_and_is_evicted_when_others_need_it) {
  TestDevice d;
  const unsigned a = d.open(), b = d.open();
  EXPECT_EQ(settle_managed(*d, a, 2000 * MiB), 832 * MiB);
  EXPECT_EQ(free_bytes(*d), 0u);
  EXPECT_EQ(take(*d, b, 833 * MiB), Refusal::no_memory);
  EXPECT_EQ(d->contexts[a].managed_bytes, 832 * MiB);
  EXPECT_EQ(take(*d, b, 31 * MiB), Refusal::none);
  EXPECT_EQ(d->contexts[a].managed_bytes, 800 * MiB);
  EXPECT_EQ(free_bytes(*d), MiB);
  limit_managed(*d, a, 900 * MiB);
  EXPECT_EQ(d->contexts[a].managed_bytes, 800 * MiB);
  limit_managed(*d, a, 100 * MiB);
  EXPECT_EQ(free_bytes(*d), 701 * MiB);
  d->faults.out_of_memory = 1;
  EXPECT_EQ(admit_managed(*d, MiB), Refusal::no_memory);
  EXPECT_EQ(admit_managed(*d, 10'000 * MiB), Refusal::none);
}

TEST(Memory, allocations_fail_as_often_as_injected) {
  TestDevice d;
  const unsigned a = d.open();
  d->faults.out_of_memory = 2;
  EXPECT_EQ(take(*d, a, memory_block_bytes), Refusal::no_memory);
  EXPECT_EQ(take(*d, a, memory_block_bytes), Refusal::no_memory);
  EXPECT_EQ(take(*d, a, memory_block_bytes), Refusal::none);
  d->faults.out_of_memory_above = 4 * MiB;
  EXPECT_EQ(take(*d, a, 6 * MiB), Refusal::no_memory);
  EXPECT_EQ(take(*d, a, 4 * MiB), Refusal::none);
}

TEST(Memory, an_xid_breaks_only_the_contexts_of_its_client) {
  TestDevice d;
  const unsigned a = d.open();
  unsigned b = 0;
  open_context(*d, 2, 1, d.now, &b);
  raise_xid(*d, 31, 700, 2, d.now);
  EXPECT_EQ(d->contexts[a].error, 0u);
  EXPECT_EQ(d->contexts[b].error, 700u);
  EXPECT_EQ(d->faults.xid_serial, 1u);
}

// A writer may be killed at any point. Here it is killed after each word that a push and a completion store.
TEST(Memory, repair_lets_half_written_rings_run_again) {
  TestDevice d;
  const unsigned a = d.open();
  const uint64_t first = d.kernel(a, 1, 1'000'000);
  d.kernel(a, 1, 1'000'000);
  Context& c = d->contexts[a];
  for (int torn = 0; torn < 4; ++torn) {
    if (torn == 0) c.active = 0;
    if (torn == 1) d->engine.active = 0;
    if (torn == 2) d->engine.used = 0;
    if (torn == 3) d->engine.copy[0].context = 3, d->engine.copy[0].channel = 9;
    repair(*d);
    EXPECT_EQ(d->engine.used, 1u);
    EXPECT_EQ(d->engine.active, 1u);
    EXPECT_EQ(c.active, 2u);
    EXPECT_EQ(d->engine.copy[0].context, -1);
  }
  d.at(5'000'000);
  EXPECT_TRUE(complete(*d, a, 1, first));
}

// Between the end of one kernel and the start of the next, no kernel runs and no event is due.
TEST(Memory, repair_starts_kernels_that_a_dead_writer_had_not_started) {
  TestDevice d;
  const unsigned a = d.open();
  d.kernel(a, 1, 1'000'000);
  const uint64_t second = d.kernel(a, 1, 1'000'000);
  d.at(500'000);
  Channel& channel = d->contexts[a].channels[1];
  channel.completed = 1;
  channel.granted = 0;
  channel.head = Head::none;
  EXPECT_EQ(next_event(*d), never_time);
  repair(*d);
  d.at(2'000'000);
  EXPECT_TRUE(complete(*d, a, 1, second));
}

// The account of client 1, which opens the contexts.
TEST(Accounts, keep_the_peak_of_all_memory_that_a_client_holds) {
  TestDevice d;
  d->accounting.on = 1;
  const unsigned a = d.open(), b = d.open();
  EXPECT_EQ(take(*d, a, 100 * MiB), Refusal::none);
  EXPECT_EQ(take_for(*d, 1, 1, 50 * MiB), Refusal::none);
  EXPECT_EQ(take(*d, b, 100 * MiB), Refusal::none);
  give(*d, a, 100 * MiB);
  EXPECT_EQ(take(*d, b, 10 * MiB), Refusal::none);
  EXPECT_EQ(d->accounting.clients[1].peak_bytes, (2 * 64 + 250) * MiB);
  EXPECT_EQ(d->accounting.clients[1].start_ns, d.now);
}

TEST(Accounts, are_closed_when_the_client_ends) {
  TestDevice d;
  d->accounting.on = 1;
  const unsigned a = d.open();
  d.at(100);
  close_context(*d, a, d.now);
  d.at(500);
  end_account(*d, 1, d.now);
  ASSERT_EQ(d->accounting.ended_count, 1u);
  EXPECT_EQ(d->accounting.ended[0].end_ns - d->accounting.ended[0].start_ns, 100u);
  EXPECT_EQ(d->accounting.running[0], 0u);
  clear_accounts(*d);
  EXPECT_EQ(d->accounting.ended_count, 0u);
}

TEST(Accounts, are_separate_for_each_client_of_a_reused_slot) {
  TestDevice d;
  d->accounting.on = 1;
  ASSERT_EQ(take_for(*d, 1, 1, 50 * MiB), Refusal::none);
  drop_holding(*d, 1);
  ASSERT_EQ(take_for(*d, 1, 2, 10 * MiB), Refusal::none);
  ASSERT_EQ(d->accounting.ended_count, 1u);
  EXPECT_EQ(d->accounting.ended[0].peak_bytes, 50 * MiB);
  EXPECT_EQ(d->accounting.clients[1].peak_bytes, 10 * MiB);
}

TEST(Accounts, are_kept_only_for_the_newest_processes) {
  TestDevice d;
  d->accounting.on = 1;
  for (uint64_t n = 1; n <= max_accounted + 2; ++n) {
    ASSERT_EQ(take_for(*d, 1, n, 2 * MiB), Refusal::none);
    drop_holding(*d, 1);
  }
  end_account(*d, 1, d.now);
  EXPECT_EQ(d->accounting.ended_count, max_accounted + 2);
  EXPECT_EQ(d->accounting.ended[1].generation, max_accounted + 2);
}

TEST(Accounts, are_not_kept_while_accounting_is_off) {
  TestDevice d;
  d.open();
  EXPECT_EQ(d->accounting.running[0], 0u);
}

}  // namespace
}  // namespace carve::sim
