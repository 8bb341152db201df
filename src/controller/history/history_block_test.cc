// Blocks are read as they were written, and damaged or hostile bytes are rejected.
#include "controller/history/history_block.h"

#include <gtest/gtest.h>

#include <random>

namespace carve::controller {
namespace {

std::vector<HistoryEntry> entries_of(std::string_view bytes) {
  std::vector<HistoryEntry> out;
  const auto block = HistoryBlock::open(bytes);
  const bool is_read = block && block->each([&](HistoryEntry&& entry) { out.push_back(std::move(entry)); });
  EXPECT_TRUE(is_read);
  return out;
}

HistoryColumn random_column(std::mt19937_64& random, size_t points) {
  HistoryColumn out;
  StepCount value = 0;
  while (out.size() < points) {
    switch (random() % 4) {
      case 0: value = no_value; break;
      case 1: value = static_cast<StepCount>(random() % no_value); break;
      case 2: value = static_cast<StepCount>(random() % 100); break;
      default: break;  // Repeats the last one.
    }
    out.push_back(value);
  }
  return out;
}

TEST(HistoryBlock, is_read_as_it_was_written) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    const size_t points = 1 + random() % max_block_points;
    std::vector<HistoryEntry> entries;
    uint64_t id = 0;
    for (size_t i = random() % 20; i > 0; --i) {
      id += 1 + random() % (uint64_t{1} << (random() % 40));
      entries.push_back({.series = id, .columns = {}});
      for (size_t c = random() % (max_history_metrics + 1); c > 0; --c)
        entries.back().columns.push_back(random_column(random, points));
    }
    const std::string bytes = encode_block(entries, points);
    EXPECT_EQ(HistoryBlock::open(bytes)->points(), points);
    EXPECT_EQ(entries_of(bytes), entries);
  }
}

TEST(HistoryBlock, yields_only_the_series_that_are_wanted) {
  std::vector<HistoryEntry> entries;
  for (uint64_t id = 1; id <= 9; ++id)
    entries.push_back({.series = id, .columns = {{static_cast<StepCount>(id)}}});
  const std::string bytes = encode_block(entries, 1);
  std::vector<uint64_t> seen;
  const uint64_t wanted[] = {2, 7, 12};
  EXPECT_TRUE(HistoryBlock::open(bytes)->each(wanted, [&](HistoryEntry&& entry) {
    EXPECT_EQ(entry.columns[0][0], entry.series);
    seen.push_back(entry.series);
  }));
  EXPECT_EQ(seen, (std::vector<uint64_t>{2, 7}));
}

TEST(HistoryBlock, takes_few_bytes_for_values_that_do_not_change) {
  HistoryEntry entry{.series = 1, .columns = {}};
  for (size_t i = 0; i < slice_metrics; ++i) entry.columns.emplace_back(60, StepCount{4096});
  const size_t constant = encode_block({&entry, 1}, 60).size();
  EXPECT_LE(constant, 9 + slice_metrics * 5);
  std::mt19937_64 random(2);
  for (HistoryColumn& column : entry.columns)
    for (StepCount& value : column) value += static_cast<StepCount>(random() % 15);
  EXPECT_LE(encode_block({&entry, 1}, 60).size(), 9 + slice_metrics * 64) << "1 byte for a small difference";
}

TEST(HistoryBlock, with_any_changed_byte_or_any_missing_end_is_rejected) {
  const HistoryEntry entries[] = {{.series = 3, .columns = {{1, 2, 3}, {no_value, 5, 5}}},
                                  {.series = 300, .columns = {{1, 1, 1}}}};
  const std::string bytes = encode_block(entries, 3);
  ASSERT_TRUE(HistoryBlock::open(bytes));
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_FALSE(HistoryBlock::open(bytes.substr(0, i))) << i;
    for (const int bit : {0, 3, 7}) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      EXPECT_FALSE(HistoryBlock::open(changed)) << i << " " << bit;
    }
  }
}

// Returns a block with a correct checksum around these entries.
std::string sealed(const std::string& entries, char points) {
  std::string bytes = {1, points};
  bytes += entries;
  uint32_t crc = ~0u;
  for (const char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int i = 0; i < 8; ++i) crc = (crc & 1) != 0 ? 0xedb88320u ^ (crc >> 1) : crc >> 1;
  }
  for (int i = 0; i < 4; ++i) bytes += static_cast<char>(~crc >> (8 * i));
  return bytes;
}

TEST(HistoryBlock, that_is_malformed_despite_its_checksum_is_rejected) {
  const std::string sound = {1, 2, 1, 8};  // Series 1 with one column: 0, twice.
  EXPECT_EQ(entries_of(sealed(sound, 2)), (std::vector<HistoryEntry>{{.series = 1, .columns = {{0, 0}}}}));
  for (const std::string& entries :
       {std::string{0, 1, 0}, std::string{1}, std::string{1, 9, 0}, std::string{1, 1, 9},
        std::string{1, 3, 1, 12, 0}, std::string{1, 2, 1, 0}, std::string{1, 2, 1, 3},
        std::string("\x01\x0b\x01\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00", 14),
        std::string("\x01\x02\x01\x06", 4),
        std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11)}) {
    const std::string bytes = sealed(entries, 2);  // The block refers to it.
    const auto block = HistoryBlock::open(bytes);
    ASSERT_TRUE(block);
    EXPECT_FALSE(block->each([](HistoryEntry&&) {})) << ::testing::PrintToString(entries);
  }
}

}  // namespace
}  // namespace carve::controller
