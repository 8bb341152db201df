// Releases memory that slices' processes exported and that no process or descriptor holds any longer
// (wire/shm/shared_blocks.h). The guest library does the same before it refuses an allocation. The agent does
// it for slices whose processes make no calls, and after the death of a process.
//
// The kernel's list of locks shows which descriptors are left. Any user can make it long, and the time to
// read it grows with the square of its length (0.3 s for 10,000 locks, 6 s for 100,000). So a thread reads it
// once for all slices and then pauses for nine times as long as the read took.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <vector>

#include "node/slice/slices.h"
#include "os/lock_list.h"
#include "os/workers.h"
#include "wire/shm/shared_blocks.h"

namespace carve::node {

// Limit for one slice in one pass. Its other blocks follow in the next passes.
inline constexpr unsigned max_block_questions = 256;
inline constexpr unsigned max_blocks_per_pass = 1024;

class SharedBlocks {
 public:
  // Calls its argument with each part of the kernel's list of locks. Returns false if the list cannot be read
  // completely.
  using ReadLocks = std::function<bool(size_t first, const std::function<void(const char*, size_t)>& piece)>;

  // Both arguments must outlive this object.
  SharedBlocks(os::Loop&, const Slices&, ReadLocks = os::read_lock_list);

  // Called every 50 ms. Takes only one load for a slice that exported nothing.
  void settle(int64_t now_monotonic_ns);
  bool is_reading() const { return !reader_.is_idle(); }

 private:
  struct Question {
    uint64_t slice = 0;
    shm::BlockQuestion block;
  };
  std::vector<Question> ask();
  void release(const std::vector<Question>&, const std::set<uint64_t>& locked);

  const Slices& slices_;
  const ReadLocks read_locks_;
  std::map<uint64_t, unsigned> next_block_;  // For slices with more blocks than fit in one pass.
  int64_t not_before_ns_ = 0;
  os::Workers reader_;  // Declared last because its results use the other members.
};

}  // namespace carve::node
