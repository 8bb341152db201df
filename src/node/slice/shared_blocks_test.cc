#include "node/slice/shared_blocks.h"

#include <gtest/gtest.h>

#include "os/clock.h"

namespace carve::node {
namespace {

struct SharedBlocksTest : testing::Test {
  os::Loop loop;
  Slices slices;

  std::string list;  // The kernel's list of locks.
  unsigned reads = 0;
  bool readable = true;
  SharedBlocks blocks{loop, slices, [this](size_t, const auto& piece) {
                        ++reads;
                        piece(list.data(), list.size());
                        return readable;
                      }};

  shm::Charges& add_slice(uint64_t id) {
    auto slice = std::make_unique<LiveSlice>();
    slice->record.id = id;
    slice->report = std::move(*make_report());
    return slices.add(std::move(slice)).report.page->charges;
  }
  // Exports a block that no process holds, as it is left by an ended process.
  static uint64_t add_block(shm::Charges& charges, uint64_t bytes) {
    shm::change(charges, {0, 0, 0}, 0, bytes, UINT64_MAX);
    const unsigned i = shm::begin_block(charges, 0, 0, shm::SharedBlockKind::descriptor,
                                        shm::first_lock_name + 3 * shm::max_shared_blocks);
    shm::move(charges, {{0, 0, 0}, bytes, 0}, {shm::lane_of(charges, i), 0, bytes});
    shm::publish(charges.block[i]);
    shm::remove_holder(charges.block[i], 0);
    return charges.block[i].name.load();
  }
  void settle() {
    blocks.settle(INT64_MAX);
    loop.every(os::millisecond, [this] {
      if (!blocks.is_reading()) loop.stop();
    });
    loop.run();
  }
  static uint64_t held(shm::Charges& charges) { return shm::in_use(charges, 0).bytes; }
};

TEST_F(SharedBlocksTest, releases_blocks_that_no_descriptor_holds_and_keeps_the_rest) {
  shm::Charges& a = add_slice(1);
  const uint64_t locked = add_block(a, 100);
  add_block(a, 10);
  list = fmt::format("1: OFDLCK  ADVISORY  READ -1 00:0f:1057 {} {}\n", locked, locked);
  settle();
  EXPECT_EQ(held(a), 100u);
  EXPECT_EQ(reads, std::size(shm::first_lock_pieces));
  list.clear();
  settle();
  EXPECT_EQ(held(a), 0u);
}

TEST_F(SharedBlocksTest, reads_the_list_once_for_all_slices_and_only_on_request) {
  shm::Charges& a = add_slice(1);
  shm::Charges& b = add_slice(2);
  settle();
  EXPECT_EQ(reads, 0u);
  for (int i = 0; i < 50; ++i) {
    add_block(a, 1);
    add_block(b, 1);
  }
  settle();
  EXPECT_EQ(held(a) + held(b), 0u);
  EXPECT_EQ(reads, std::size(shm::first_lock_pieces));
}

TEST_F(SharedBlocksTest, keeps_every_block_if_the_list_cannot_be_read) {
  shm::Charges& a = add_slice(1);
  add_block(a, 100);
  readable = false;
  settle();
  EXPECT_EQ(held(a), 100u);
}

// A slice can write blocks that appear to need a check.
TEST_F(SharedBlocksTest, checks_a_limited_number_of_blocks_of_a_slice_in_one_pass) {
  shm::Charges& a = add_slice(1);
  const unsigned forged = 3 * max_block_questions;
  for (unsigned i = 0; i < forged; ++i) add_block(a, 1);
  settle();
  EXPECT_EQ(held(a), forged - max_block_questions);
  settle();
  settle();
  EXPECT_EQ(held(a), 0u) << "the next passes continue after it";
}

TEST_F(SharedBlocksTest, pauses_after_a_read_that_took_long) {
  shm::Charges& a = add_slice(1);
  add_block(a, 100);
  settle();
  ASSERT_EQ(reads, std::size(shm::first_lock_pieces));
  add_block(a, 100);
  blocks.settle(0);  // Just before the read has ended.
  EXPECT_FALSE(blocks.is_reading());
  settle();
  EXPECT_EQ(held(a), 0u);
}

TEST_F(SharedBlocksTest, survives_the_end_of_a_slice_while_the_list_is_read) {
  add_block(add_slice(1), 100);
  blocks.settle(INT64_MAX);
  slices.erase(1);
  settle();
  EXPECT_EQ(reads, std::size(shm::first_lock_pieces));
}

}  // namespace
}  // namespace carve::node
