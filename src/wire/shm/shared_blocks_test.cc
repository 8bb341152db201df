#include "wire/shm/shared_blocks.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace carve::shm {
namespace {

constexpr uint64_t limit = 1000;

struct SharedMemory {
  Charges* at = static_cast<Charges*>(
      mmap(nullptr, sizeof(Charges), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ~SharedMemory() { munmap(at, sizeof(Charges)); }
  Charges& operator*() const { return *at; }
  uint64_t used(unsigned device = 0) const { return read(at->budget[device]).used; }
};

constexpr auto none_is_locked = [](uint64_t*, unsigned) {};

// The process in `slot` charges the bytes and exports them.
unsigned exported(Charges& charges, unsigned slot, uint64_t bytes, uint64_t name, unsigned device = 0,
                  SharedBlockKind kind = SharedBlockKind::descriptor) {
  EXPECT_TRUE(change(charges, {device, slot, 0}, 0, bytes, limit));
  const unsigned block = begin_block(charges, slot, device, kind, name);
  EXPECT_NE(block, no_block);
  EXPECT_TRUE(move(charges, {{device, slot, 0}, bytes, 0}, {lane_of(charges, block), 0, bytes}));
  publish(charges.block[block]);
  return block;
}

TEST(SharedBlock, takes_over_its_bytes_without_charging_more) {
  const SharedMemory charges;
  const unsigned block = exported(*charges, 1, 300, first_lock_name + 1);
  EXPECT_EQ(charges.used(), 300u);
  EXPECT_EQ(holding(*charges, {0, 1, 0}), 0u);
  EXPECT_EQ(holding(*charges, lane_of(*charges, block)), 300u);
  EXPECT_TRUE(reclaim(*charges, 1));
  EXPECT_EQ(charges.used(), 300u) << "the exporter's death does not release the block";
}

TEST(SharedBlock, is_released_when_no_process_and_no_descriptor_holds_it) {
  const SharedMemory charges;
  const unsigned block = exported(*charges, 1, 300, first_lock_name + 1);
  SharedBlock& b = (*charges).block[block];
  const uint64_t name = b.name.load();
  EXPECT_EQ(find_block(*charges, name), block);
  bool locked = true;
  const auto settle = [&] {
    return settle_blocks(*charges, 0, 2, [&](uint64_t* names, unsigned count) {
      for (unsigned i = 0; i < count && locked; ++i) names[i] = 0;
    });
  };
  EXPECT_FALSE(settle());
  add_holder(b, 2);
  remove_holder(b, 1);
  locked = false;
  EXPECT_FALSE(settle()) << "the importer holds the block";
  locked = true;
  remove_holder(b, 2);
  EXPECT_FALSE(settle()) << "a descriptor holds the block";
  EXPECT_EQ(charges.used(), 300u);
  locked = false;
  EXPECT_TRUE(settle());
  EXPECT_EQ(charges.used(), 0u);
  EXPECT_EQ(find_block(*charges, name), no_block);
}

TEST(SharedBlock, of_a_handle_is_released_without_a_search_and_only_on_its_device) {
  const SharedMemory charges;
  const unsigned here = exported(*charges, 1, 10, handle_name_of(77), 0, SharedBlockKind::handle);
  const unsigned there = exported(*charges, 1, 20, handle_name_of(78), 1, SharedBlockKind::handle);
  for (const unsigned block : {here, there}) remove_holder((*charges).block[block], 1);
  const auto refuse = [](uint64_t*, unsigned) { ADD_FAILURE() << "no search for descriptors is needed"; };
  EXPECT_TRUE(settle_blocks(*charges, 1, 1, refuse));
  EXPECT_EQ(charges.used(0), 10u);
  EXPECT_EQ(charges.used(1), 0u);
  EXPECT_TRUE(settle_blocks(*charges, every_device, 1, refuse));
  EXPECT_EQ(charges.used(0), 0u);
}

TEST(SharedBlock, within_another_block_stays_charged_as_long_as_that_block) {
  const SharedMemory charges;
  const unsigned outer = exported(*charges, 1, 0, first_lock_name);
  const uint64_t object = (*charges).block[outer].name.load();
  ASSERT_TRUE(change(*charges, {0, 1, 0}, 0, 40, limit));
  const unsigned inner = begin_block(*charges, 1, 0, SharedBlockKind::bound, handle_name_of(3), object);
  ASSERT_TRUE(move(*charges, {{0, 1, 0}, 40, 0}, {lane_of(*charges, inner), 0, 40}));
  publish((*charges).block[inner]);
  remove_holder((*charges).block[inner], 1);
  settle_blocks(*charges, 0, 1, none_is_locked);
  EXPECT_EQ(charges.used(), 40u);
  remove_holder((*charges).block[outer], 1);
  while (settle_blocks(*charges, 0, 1, none_is_locked)) {}
  EXPECT_EQ(charges.used(), 0u);
}

// The exporter's pool has 30 of the 100 bytes left, and an importer may still hold the other 70.
TEST(SharedBlock, of_a_pool_is_lowered_when_only_its_exporter_holds_it) {
  const SharedMemory charges;
  const unsigned pool = exported(*charges, 1, 100, first_lock_name, 0, SharedBlockKind::pool);
  SharedBlock& block = (*charges).block[pool];
  add_holder(block, 2);
  block.keep = 30;
  EXPECT_FALSE(settle_blocks(*charges, 0, 3, none_is_locked));
  EXPECT_EQ(charges.used(), 100u);
  EXPECT_TRUE(leave_blocks(*charges, 2));
  EXPECT_TRUE(settle_blocks(*charges, 0, 3, none_is_locked));
  EXPECT_EQ(charges.used(), 30u);
  EXPECT_FALSE(settle_blocks(*charges, 0, 3, none_is_locked));
  add_holder(block, 2);
  block.keep = 10;
  EXPECT_TRUE(leave_blocks(*charges, 1));
  EXPECT_FALSE(settle_blocks(*charges, 0, 3, none_is_locked)) << "only the importer holds the block";
  EXPECT_EQ(charges.used(), 30u);
  EXPECT_TRUE(leave_blocks(*charges, 2));
  EXPECT_TRUE(settle_blocks(*charges, 0, 3, none_is_locked));
  EXPECT_EQ(charges.used(), 0u);
}

// The exporter imported its own pool, so it has pointers from the import in addition to the pool itself.
TEST(SharedBlock, of_a_pool_is_not_lowered_while_its_exporter_also_imports_it) {
  const SharedMemory charges;
  const unsigned pool = exported(*charges, 1, 100, first_lock_name, 0, SharedBlockKind::pool);
  SharedBlock& block = (*charges).block[pool];
  block.own_imports = 1;
  block.keep = 0;
  EXPECT_FALSE(settle_blocks(*charges, 0, 3, none_is_locked));
  EXPECT_EQ(charges.used(), 100u);
  block.own_imports = 0;
  EXPECT_TRUE(settle_blocks(*charges, 0, 3, none_is_locked));
  EXPECT_EQ(charges.used(), 0u);
}

// While the locks are read, a process imports the memory, exports it again and releases its own reference.
TEST(SharedBlock, is_kept_by_a_descriptor_that_is_made_while_the_locks_are_read) {
  const SharedMemory charges;
  const unsigned block = exported(*charges, 1, 300, first_lock_name);
  SharedBlock& b = (*charges).block[block];
  remove_holder(b, 1);
  const auto passed_on = [&](uint64_t*, unsigned) {
    add_holder(b, 2);
    remove_holder(b, 2);
  };
  EXPECT_FALSE(settle_blocks(*charges, 0, 3, passed_on));
  EXPECT_EQ(charges.used(), 300u);
  EXPECT_TRUE(settle_blocks(*charges, 0, 3, none_is_locked)) << "the new descriptor is closed";
  EXPECT_EQ(charges.used(), 0u);
}

// An importer that arrives while the block is being released either keeps the block or does not find it.
TEST(SharedBlock, is_kept_or_not_found_by_an_import_during_its_release) {
  for (int round = 0; round < 3000; ++round) {
    const SharedMemory charges;
    const unsigned block = exported(*charges, 1, 300, first_lock_name);
    SharedBlock& b = (*charges).block[block];
    const uint64_t name = b.name.load();
    remove_holder(b, 1);
    bool kept = false;
    {
      std::jthread importer([&] {
        add_holder(b, 2);
        kept = is_held(b, name);
        if (!kept) remove_holder(b, 2);
      });
      settle_blocks(*charges, 0, 1, none_is_locked);
    }
    ASSERT_TRUE(!kept || charges.used() == 300u);
    settle_blocks(*charges, 0, 1, none_is_locked);
    ASSERT_EQ(charges.used(), kept ? 300u : 0u);
  }
}

TEST(SharedBlock, entries_can_all_be_used_and_released) {
  const SharedMemory charges;
  ASSERT_TRUE(change(*charges, {0, 1, 0}, 0, max_shared_blocks, UINT64_MAX));
  for (unsigned i = 0; i < max_shared_blocks; ++i) {
    const unsigned block = begin_block(*charges, 1, 0, SharedBlockKind::descriptor, first_lock_name + 1 + i);
    ASSERT_EQ(block, i);
    ASSERT_TRUE(move(*charges, {{0, 1, 0}, max_shared_blocks - i, max_shared_blocks - i - 1},
                     {lane_of(*charges, block), 0, 1}));
    publish((*charges).block[block]);
  }
  EXPECT_EQ(begin_block(*charges, 1, 0, SharedBlockKind::descriptor, first_lock_name), no_block);
  EXPECT_TRUE(leave_blocks(*charges, 1));
  EXPECT_TRUE(settle_blocks(*charges, 0, Tag::agent, none_is_locked));
  EXPECT_EQ(charges.used(), 0u);
}

TEST(SharedBlock, pages_overwritten_with_garbage_crash_no_process) {
  const SharedMemory charges;
  auto* words = reinterpret_cast<uint64_t*>((*charges).block);
  uint64_t x = 88172645463325252ull;
  (*charges).block_end = UINT64_MAX;
  for (size_t i = 0; i < sizeof(SharedBlock) * 512 / 8; ++i) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    words[i] = i % 24 == 0 ? x % 4 | x % 7 << 8 : x;
  }
  for (unsigned slot : {0u, 3u, max_processes - 1, Tag::agent}) leave_blocks(*charges, slot);
  settle_blocks(*charges, every_device, Tag::agent, none_is_locked, NoStops{}, agent_attempts);
}

std::vector<uint64_t> names_in(const std::string& text, size_t piece = 7) {
  std::vector<uint64_t> names;
  LockReader reader;
  for (size_t i = 0; i < text.size(); i += piece)
    reader.read(text.data() + i, std::min(piece, text.size() - i),
                [&](uint64_t name) { names.push_back(name); });
  return names;
}

TEST(LockReader, finds_names_among_locks_of_other_programs) {
  const std::string name = std::to_string(first_lock_name + 12345);
  EXPECT_EQ(names_in("1: OFDLCK ADVISORY  READ -1 fe:00:9977900 " + name + " " + name + "\n" +
                     "2: POSIX  ADVISORY  WRITE 7345 00:1a:4183 0 EOF\n" +
                     "3: FLOCK  ADVISORY  WRITE 12 00:1a:4183 4611686018427387999 EOF\n" +
                     "4: POSIX  ADVISORY  WRITE 7345 00:1a:4183 1073741824 1073742335\n" +
                     "4: -> OFDLCK ADVISORY  READ -1 00:06:3 " + name + " " + name + "\n"),
            (std::vector{first_lock_name + 12345, first_lock_name + 12345}));
}

TEST(LockReader, parses_the_kernels_lines_for_files_and_device_nodes) {
  const std::string file = "/proc/self/exe";
  for (const char* path : {"/dev/null", file.c_str()}) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct flock lock = {};
    lock.l_type = F_RDLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = static_cast<off_t>(first_lock_name + 4242);
    lock.l_len = 1;
    ASSERT_EQ(fcntl(fd, F_OFD_SETLK, &lock), 0) << path;
    for (const std::string& list : {std::string("/proc/locks"), "/proc/self/fdinfo/" + std::to_string(fd)}) {
      std::stringstream text;
      text << std::ifstream(list).rdbuf();
      EXPECT_EQ(std::ranges::count(names_in(text.str()), first_lock_name + 4242), 1) << list;
    }
    close(fd);
  }
}

// A list of locks that is read while others change it.
struct Readings {
  std::vector<std::vector<uint64_t>> lists;  // One list per reading; the last one repeats.
  std::vector<size_t> first_pieces;          // The requested sizes.
  bool is_readable = true;

  bool operator()(size_t first, auto piece) {
    const auto& names = lists[std::min(first_pieces.size(), lists.size() - 1)];
    first_pieces.push_back(first);
    for (const uint64_t name : names) {
      const std::string line =
          "1: OFDLCK ADVISORY  READ -1 00:06:3 " + std::to_string(name) + " " + std::to_string(name) + "\n";
      piece(line.data(), line.size());
    }
    return is_readable;
  }
};

std::vector<uint64_t> not_locked(Readings& readings, std::vector<uint64_t> names) {
  erase_locked_names(names.data(), static_cast<unsigned>(names.size()),
                     [&](size_t first, auto piece) { return readings(first, piece); });
  std::erase(names, 0u);
  return names;
}

constexpr uint64_t one = first_lock_name + 1, two = first_lock_name + 2, three = first_lock_name + 3;

TEST(LockedNames, need_one_reading_if_all_are_locked) {
  Readings readings{{{one, two, three}}, {}};
  EXPECT_EQ(not_locked(readings, {one, two}), std::vector<uint64_t>{});
  EXPECT_EQ(readings.first_pieces.size(), 1u);
}

TEST(LockedNames, are_read_with_different_page_boundaries_each_time) {
  Readings readings{{{one}}, {}};
  EXPECT_EQ(not_locked(readings, {one, two}), std::vector{two});
  EXPECT_TRUE(std::ranges::equal(readings.first_pieces, first_lock_pieces));
  EXPECT_EQ(std::set(std::begin(first_lock_pieces), std::end(first_lock_pieces)).size(), 4u);
}

// The removal of another lock hid the name in the other readings.
TEST(LockedNames, are_locked_if_one_reading_contains_them) {
  for (size_t at = 0; at < std::size(first_lock_pieces); ++at) {
    Readings readings{std::vector(std::size(first_lock_pieces), std::vector{one}), {}};
    readings.lists[at].push_back(two);
    EXPECT_EQ(not_locked(readings, {one, two, three}), std::vector{three});
  }
}

TEST(LockedNames, are_all_treated_as_locked_if_the_list_cannot_be_read) {
  Readings readings{{{two}}, {}, false};
  EXPECT_EQ(not_locked(readings, {one}), std::vector<uint64_t>{});
}

// Other programs lock and unlock all the time, on every processor. A single reading would miss a name in a
// third of all cases.
TEST(LockedNames, are_found_in_the_kernels_list_while_other_programs_change_it) {
  const auto lock = [](int fd, short type, uint64_t at) {
    struct flock wanted = {};
    wanted.l_type = type;
    wanted.l_whence = SEEK_SET;
    wanted.l_start = static_cast<off_t>(at);
    wanted.l_len = 1;
    return fcntl(fd, F_OFD_SETLK, &wanted);
  };
  const uint64_t from = first_lock_name + static_cast<uint64_t>(getpid()) * 1'000'000;
  constexpr unsigned count = 200;  // Several pages of the list.
  std::vector<uint64_t> names;
  std::vector<int> files;
  for (unsigned i = 0; i < count; ++i) {
    files.push_back(memfd_create("locked", MFD_CLOEXEC));
    names.push_back(from + i * 1000);
    ASSERT_EQ(lock(files.back(), F_RDLCK, names.back()), 0);
  }
  std::vector<std::jthread> others;
  for (int thread = 0; thread < 2; ++thread)
    others.emplace_back([&](const std::stop_token& stop) {
      const int file = memfd_create("others", MFD_CLOEXEC);
      while (!stop.stop_requested())
        for (const short type : {F_RDLCK, F_UNLCK})
          for (uint64_t at = 0; at < 10; at += 2) lock(file, type, at);
      close(file);
    });
  for (int round = 0; round < 300; ++round) {
    std::set<uint64_t> found;
    const auto read = [](size_t first, auto piece) {
      const int list = open("/proc/locks", O_RDONLY | O_CLOEXEC);
      char text[lock_page_bytes];
      ssize_t got = 0;
      for (size_t size = first; (got = ::read(list, text, size)) > 0; size = sizeof text)
        piece(text, static_cast<size_t>(got));
      close(list);
      return got == 0;
    };
    const auto keep_ours = [&](uint64_t name) {
      if (name >= from && name < from + count * 1000) found.insert(name);
    };
    ASSERT_TRUE(read_locked_names(read, keep_ours, [] { return false; }));
    ASSERT_EQ(found.size(), count);
  }
  others.clear();
  for (const int file : files) close(file);
}

}  // namespace
}  // namespace carve::shm
