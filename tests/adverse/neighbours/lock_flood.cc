// adverse_lock_flood LOCKS: a process of a slice that makes the agent search for descriptors of exported
// memory: every block in its report page appears to be held only by a descriptor, and the kernel's list of
// locks is long. Prints "ready" and keeps running. Needs no privileges.
#include <fcntl.h>

#include "attacker.h"
#include "wire/shm/shared_blocks.h"

int main(int, char** argv) {
  using namespace carve;
  shm::Charges& charges = adverse::attach().charges;
  constexpr long locks_per_file = 1000;
  const long locks = strtol(argv[1], nullptr, 10);
  for (long made = 0; made < locks; ++made) {
    static int file = -1;
    if (made % locks_per_file == 0) file = memfd_create("locks", 0);  // Closed when the process ends.
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = static_cast<off_t>(shm::first_lock_name + 2 * static_cast<uint64_t>(made));
    lock.l_len = 1;
    if (fcntl(file, F_OFD_SETLK, &lock) != 0) {
      perror("lock");
      return 1;
    }
  }
  for (unsigned i = 0; i < shm::max_shared_blocks; ++i) {
    shm::SharedBlock& block = charges.block[i];
    block.name.store(shm::first_lock_name + 2 * uint64_t{i});  // Its name is locked, so it is never released.
    block.device.store(0);
    block.kind.store(static_cast<uint32_t>(shm::SharedBlockKind::descriptor));
    block.state.store(shm::block_word(shm::SharedBlockState::held));
  }
  charges.block_end.store(shm::max_shared_blocks);
  puts("ready");
  fflush(stdout);
  pause();
}
