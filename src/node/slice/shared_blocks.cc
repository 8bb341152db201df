#include "node/slice/shared_blocks.h"

#include <algorithm>

#include "os/clock.h"

namespace carve::node {
namespace {

constexpr int64_t rests_per_read = 9;

struct LockList {
  bool was_read = false;
  std::set<uint64_t> locked;  // Names that are locked.
  int64_t took_ns = 0;
};

// `names` must be sorted.
LockList list_locked(const SharedBlocks::ReadLocks& read, const std::vector<uint64_t>& names) {
  LockList out;
  const int64_t begun = os::monotonic_ns();
  const auto locked = [&](uint64_t name) {
    if (std::ranges::binary_search(names, name)) out.locked.insert(name);
  };
  out.was_read = shm::read_locked_names(read, locked, [&] { return out.locked.size() == names.size(); });
  out.took_ns = os::monotonic_ns() - begun;
  return out;
}

}  // namespace

SharedBlocks::SharedBlocks(os::Loop& loop, const Slices& slices, ReadLocks read_locks)
    : slices_(slices), read_locks_(std::move(read_locks)), reader_(loop, os::Workers::without_limit_ns) {}

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
  const auto work = [this, read = read_locks_, questions = std::move(questions),
                     names = std::move(names)]() -> os::Workers::Act {
    LockList list = list_locked(read, names);
    return [this, questions, list = std::move(list)] {
      not_before_ns_ = os::monotonic_ns() + rests_per_read * list.took_ns;
      if (list.was_read) release(questions, list.locked);
    };
  };
  reader_.run("locks", work, nullptr);
}

// A slice may have ended in the meantime; release_block() detects whether a block has changed.
void SharedBlocks::release(const std::vector<Question>& questions, const std::set<uint64_t>& locked) {
  for (const Question& q : questions) {
    LiveSlice* const slice = slices_.find(q.slice);
    if (slice == nullptr || !slice->report.page || locked.contains(q.block.name)) continue;
    shm::release_block(slice->report.page->charges, q.block.block, q.block.name, q.block.joins,
                       shm::Tag::agent, shm::NoStops{}, shm::agent_attempts);
  }
}

}  // namespace carve::node
