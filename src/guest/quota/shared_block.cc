#include "guest/quota/shared_block.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guest/linkage/ensure.h"

namespace carve::guest {
namespace {

// Raw calls: the program may have replaced these functions, and their symbols are newer than the oldest
// supported glibc.
int open_file(const char* path) {
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC));
}

// Calls `piece(text, size)` for all of a file, first with at most `first` bytes. Returns false if it cannot
// be read.
template <class Piece>
bool read_file(const char* path, size_t first, Piece piece) {
  const int fd = open_file(path);
  if (fd < 0) return false;
  char text[shm::lock_page_bytes];
  long got = 0;
  for (size_t size = first; (got = syscall(SYS_read, fd, text, size)) > 0; size = sizeof text)
    piece(text, static_cast<size_t>(got));
  syscall(SYS_close, fd);
  return got == 0;
}

void erase_locked(uint64_t* names, unsigned count) {
  shm::erase_locked_names(names, count,
                          [](size_t first, auto piece) { return read_file("/proc/locks", first, piece); });
}

// Another process may be releasing the block. That process then either finds this process's bit and keeps the
// block, or frees the block. Both take less than a microsecond.
constexpr unsigned join_attempts = 10'000;

unsigned find_and_hold(Process& p, uint64_t name) REQUIRES(p.sharing) {
  shm::Charges& charges = p.report->charges;
  for (unsigned tries = 0; tries < join_attempts; ++tries) {
    const unsigned block = shm::find_block(charges, name);
    if (block == no_block) return no_block;
    const bool held_already = shm::has_holder(charges.block[block], p.slot);
    shm::add_holder(charges.block[block], p.slot);
    if (shm::is_held(charges.block[block], name)) return block;
    if (tries + 1 == join_attempts) return block;  // Held by the bit, whatever the other process does.
    if (!held_already) shm::remove_holder(charges.block[block], p.slot);
    sched_yield();
  }
  return no_block;
}

// Returns whether this was the first use. If there is no memory for the record, the bit stays set until this
// process ends. The bytes are then charged for longer than necessary, but never too short.
bool add_use(Process& p, unsigned block) REQUIRES(p.sharing) {
  Record record;
  if (p.block_uses.use(block + 1, 1, &record)) return false;
  Record previous;
  p.block_uses.put(record_of(block + 1, 0, {}), &previous);
  return true;
}

}  // namespace

unsigned share(Process& p, const Charge& charge, SharedBlockKind kind, uint64_t name, uint64_t within) {
  if (charge.device >= p.device_count) return no_block;
  shm::Charges& charges = p.report->charges;
  p.sharing.lock();
  const unsigned block = shm::begin_block(charges, p.slot, charge.device, kind, name, within);
  bool moved = false;
  if (block != no_block) {
    moved = move_to_block(p, charge, block);
    if (moved) {
      add_use(p, block);
      shm::publish(charges.block[block]);
    } else {
      shm::remove_holder(charges.block[block], p.slot);
      shm::finish_block(charges, block);
    }
  }
  p.sharing.unlock();
  return moved ? block : no_block;
}

unsigned join(Process& p, uint64_t name) {
  p.sharing.lock();
  const unsigned block = find_and_hold(p, name);
  if (block != no_block) add_use(p, block);
  p.sharing.unlock();
  return block;
}

namespace {

// Takes the block's lane. If another process is changing the block, waits for it, which takes less than a
// microsecond.
bool take_lane(Process& p, unsigned block) {
  for (unsigned tries = 0; tries < join_attempts; ++tries) {
    if (shm::take_lane(p.report->charges.block[block], p.slot)) return true;
    sched_yield();
  }
  return false;
}

}  // namespace

bool add_to_block(Process& p, const Charge& charge, unsigned block) {
  shm::SharedBlock& shared = p.report->charges.block[block];
  if (!take_lane(p, block)) return false;
  const bool moved = move_to_block(p, charge, block);
  if (const uint64_t keep = shared.keep.load(); moved && keep != UINT64_MAX)
    shared.keep.store(keep + charge.bytes);
  shm::publish(shared);
  return moved;
}

uint64_t bytes_of_block(Process& p, unsigned block) {
  return shm::holding(p.report->charges, shm::lane_of(p.report->charges, block));
}

void keep_in_block(Process& p, unsigned block, Bytes bytes) {
  p.report->charges.block[block].keep.store(bytes.count);
  shm::lower_pool(p.report->charges, block, p.slot);
}

bool is_pool_held_beside(Process& p, unsigned block) {
  const shm::SharedBlock& shared = p.report->charges.block[block];
  return shared.kind.load() == static_cast<uint32_t>(SharedBlockKind::unnamed) ||
         shm::is_pool_held_beside(shared, p.slot);
}

void begin_own_import(Process& p, unsigned block) {
  shm::SharedBlock& shared = p.report->charges.block[block];
  if (shared.exporter.load(std::memory_order_relaxed) == p.slot) shared.own_imports.fetch_add(1);
}

void end_own_import(Process& p, unsigned block) {
  shm::SharedBlock& shared = p.report->charges.block[block];
  if (shared.exporter.load(std::memory_order_relaxed) == p.slot && shared.own_imports.load() != 0)
    shared.own_imports.fetch_sub(1);
}

void keep_until_slice_ends(Process& p, unsigned block) {
  p.report->charges.block[block].kind.store(static_cast<uint32_t>(SharedBlockKind::unnamed));
}

void leave(Process& p, unsigned block) {
  if (!ensure(block < shm::max_shared_blocks)) return;
  shm::Charges& charges = p.report->charges;
  Record record;
  p.sharing.lock();
  const bool last = p.block_uses.use(block + 1, -1, &record) && record.uses == 0;
  if (last) shm::remove_holder(charges.block[block], p.slot);
  p.sharing.unlock();
  if (!last) return;
  uint64_t name = charges.block[block].name.load();
  const uint32_t joins = charges.block[block].joins.load();
  const shm::SharedBlockUse use = shm::use_of(charges, charges.block[block]);
  if (use == shm::SharedBlockUse::in_use) return;
  const uint64_t asked = name;
  if (use == shm::SharedBlockUse::may_have_descriptors) erase_locked(&name, 1);
  if (name != 0) shm::release_block(charges, block, asked, joins, p.slot);
}

bool settle_all_shared(Process& p, unsigned device) {
  return shm::settle_blocks(p.report->charges, device, p.slot, erase_locked);
}

uint64_t new_name() {
  uint64_t random = 0;
  // If the kernel returns no random bytes (before Linux 3.17, or if interrupted), the name is still
  // practically unique on the machine.
  if (syscall(SYS_getrandom, &random, sizeof random, GRND_NONBLOCK) != sizeof random)
    random = __builtin_ia32_rdtsc() * 0x9e37'79b9'7f4a'7c15;
  return shm::lock_name_of(random, 0);
}

bool name_descriptor(int fd, uint64_t name) {
  struct flock lock = {};
  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(name);
  lock.l_len = 1;
  if (syscall(SYS_fcntl, fd, F_OFD_SETLK, &lock) == 0) return true;
  lock.l_type = F_WRLCK;  // The lock requires a descriptor that is open for writing.
  return syscall(SYS_fcntl, fd, F_OFD_SETLK, &lock) == 0;
}

uint64_t name_of_descriptor(int fd) {
  char path[64] = "/proc/thread-self/fdinfo/";
  char* end = path + __builtin_strlen(path);
  char digits[12];
  unsigned count = 0;
  if (fd < 0) return 0;
  for (auto left = static_cast<unsigned>(fd); count == 0 || left != 0; left /= 10)
    digits[count++] = static_cast<char>('0' + left % 10);
  while (count != 0) *end++ = digits[--count];
  shm::LockReader reader;
  uint64_t found = 0;
  read_file(path, shm::lock_page_bytes, [&](const char* text, size_t size) {
    reader.read(text, size, [&](uint64_t name) { found = name; });
  });
  return found;
}

}  // namespace carve::guest
