// Releases memory that slices' processes exported and that no process and no descriptor holds any more
// (wire/shm/shared_blocks.h). The guest library does the same before it refuses an allocation. The agent does
// it for slices whose processes make no call, and after a death.
//
// The kernel's list of locks shows which descriptors are left. Any user can make it long, and the kernel then
// takes time that grows with the square of its length: 0.3 s for 10,000 locks, 6 s for 100,000. So a thread
// reads it, once for the questions of all slices, and rests nine times as long as the read took.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "node/slice/slices.h"
#include "os/job_thread.h"
#include "wire/shm/shared_blocks.h"

namespace carve::node {

// Of one slice in one pass. Its other blocks follow in the next passes.
inline constexpr unsigned max_block_questions = 256;
inline constexpr unsigned max_blocks_per_pass = 1024;

class SharedBlocks {
 public:
  // Calls its argument with each part of the kernel's list of locks; returns false if it cannot be read
  // whole.
  using ReadLocks = std::function<bool(const std::function<void(const char*, size_t)>&)>;
  static bool read_kernel_locks(const std::function<void(const char*, size_t)>&);

  // Both must outlive this object.
  SharedBlocks(os::Loop&, const Slices&, ReadLocks = read_kernel_locks);

  // Called every 50 ms. Costs one load for a slice that exported nothing.
  void settle(int64_t now_monotonic_ns);
  bool is_reading() const { return !thread_.is_idle(); }

 private:
  struct Question {
    uint64_t slice = 0;
    shm::BlockQuestion block;
  };
  std::vector<Question> ask();
  void release(const std::vector<Question>&, const std::vector<uint64_t>& locked);

  const Slices& slices_;
  const ReadLocks read_locks_;
  std::map<uint64_t, unsigned> next_block_;  // Of slices with more blocks than fit in one pass.
  int64_t not_before_ns_ = 0;
  os::JobThread thread_;  // Last: its results use the others.
};

}  // namespace carve::node
