#include "node/slice/shared_blocks.h"

#include <fcntl.h>

#include <algorithm>

#include "os/clock.h"

namespace carve::node {
namespace {

constexpr size_t max_lock_list_bytes = 64 << 20;  // 500,000 locks.
constexpr int64_t rests_per_read = 9;

struct LockList {
  bool is_complete = false;
  std::vector<uint64_t> locked;  // Those of the names that are locked.
  int64_t took_ns = 0;
};

// `names` is sorted.
LockList list_locked(const SharedBlocks::ReadLocks& read, const std::vector<uint64_t>& names) {
  LockList out;
  const int64_t begun = os::monotonic_ns();
  out.is_complete = shm::read_locked_names(read, [&](uint64_t name) {
    if (std::ranges::binary_search(names, name)) out.locked.push_back(name);
  });
  std::ranges::sort(out.locked);
  out.took_ns = os::monotonic_ns() - begun;
  return out;
}

}  // namespace

bool SharedBlocks::read_kernel_locks(const std::function<void(const char*, size_t)>& piece) {
  const os::Fd list(open("/proc/locks", O_RDONLY | O_CLOEXEC));
  char text[4096];  // The kernel fills one page for each call.
  size_t bytes = 0;
  while (list) {
    const ssize_t n = read(list.get(), text, sizeof text);
    if (n <= 0) return n == 0;
    bytes += static_cast<size_t>(n);
    if (bytes > max_lock_list_bytes) return false;
    piece(text, static_cast<size_t>(n));
  }
  return false;
}

SharedBlocks::SharedBlocks(os::Loop& loop, const Slices& slices, ReadLocks read_locks)
    : slices_(slices), read_locks_(std::move(read_locks)), thread_(loop, 1) {}

std::vector<SharedBlocks::Question> SharedBlocks::ask() {
  std::vector<Question> out;
  std::erase_if(next_block_, [this](const auto& entry) { return slices_.find(entry.first) == nullptr; });
  for (const auto& [id, slice] : slices_) {
    if (!slice->report.page) continue;
    shm::Charges& charges = slice->report.page->charges;
    const unsigned end = shm::block_end(charges);
    if (end == 0) continue;
    unsigned& from = next_block_[id];
    if (from >= end) from = 0;
    shm::BlockQuestion questions[max_block_questions];
    unsigned count = 0;
    bool any_released = false;
    from = shm::ask_blocks(charges, shm::every_device, shm::Tag::agent, from,
                           std::min(end, from + max_blocks_per_pass), questions, max_block_questions, count,
                           any_released, shm::NoStops{}, shm::agent_attempts);
    for (unsigned i = 0; i < count; ++i) out.push_back({id, questions[i]});
  }
  return out;
}

void SharedBlocks::settle(int64_t now_ns) {
  if (is_reading() || now_ns < not_before_ns_) return;
  std::vector<Question> questions = ask();
  if (questions.empty()) return;
  std::vector<uint64_t> names;
  for (const Question& q : questions) names.push_back(q.block.name);
  std::ranges::sort(names);
  thread_.post([this, questions = std::move(questions), names = std::move(names)]() -> os::JobThread::Done {
    LockList list = list_locked(read_locks_, names);
    return [this, questions, list = std::move(list)] {
      not_before_ns_ = os::monotonic_ns() + rests_per_read * list.took_ns;
      if (list.is_complete) release(questions, list.locked);
    };
  });
}

// A slice may have ended meanwhile; release_block() finds out whether a block changed.
void SharedBlocks::release(const std::vector<Question>& questions, const std::vector<uint64_t>& locked) {
  for (const Question& q : questions) {
    LiveSlice* const slice = slices_.find(q.slice);
    if (slice == nullptr || !slice->report.page || std::ranges::binary_search(locked, q.block.name)) continue;
    shm::release_block(slice->report.page->charges, q.block.block, q.block.name, q.block.joins,
                       shm::Tag::agent, shm::NoStops{}, shm::agent_attempts);
  }
}

}  // namespace carve::node
