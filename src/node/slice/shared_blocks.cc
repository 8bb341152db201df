#include "node/slice/shared_blocks.h"

#include "os/process.h"
#include "wire/shm/shared_blocks.h"

namespace carve::node {
namespace {

constexpr size_t max_lock_list = 64 << 20;  // 500,000 locks.

void erase_locked(uint64_t* names, unsigned count) {
  shm::erase_locked_names(names, count, [](auto piece) {
    const auto list = os::read_file("/proc/locks", max_lock_list);
    if (!list || list->size() >= max_lock_list) return false;
    piece(list->data(), list->size());
    return true;
  });
}

}  // namespace

void settle_shared_blocks(shm::Charges& charges) {
  // One batch, because a slice may write any number of blocks that look as if they were in question.
  if (shm::block_end(charges) != 0)
    shm::settle_blocks<shm::max_shared_blocks>(charges, shm::every_device, shm::Tag::agent, erase_locked,
                                               shm::NoStops{}, shm::agent_attempts);
}

}  // namespace carve::node
