#include "guest/memory/descriptors.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guest/memory/physical.h"

namespace carve::guest {
namespace {

// Returns a value that distinguishes a descriptor from a later one with the same number; 0: it is not open.
uint32_t fingerprint_of(int fd) {
  struct stat status;
  if (syscall(SYS_fstat, fd, &status) != 0) return 0;
  const uint64_t numbers[3] = {status.st_dev, status.st_ino, status.st_rdev};
  const auto print = static_cast<uint32_t>(map_key_of(numbers, sizeof numbers) >> 32);
  return print != 0 ? print : 1;
}

// A record's key is the number plus one, its bytes the memory's identity, its uses the fingerprint. Its
// context is the round in which it was last seen open: a check moves the record from one round to the other.
Record descriptor_record(int fd, uint32_t fingerprint, uint64_t physical, uint64_t round) {
  Record r = guest::record_of(static_cast<uint64_t>(fd) + 1, round, {physical, 0, 0});
  r.uses = fingerprint;
  return r;
}

// Enters a record. Returns false without memory for it.
bool enter(Process& p, const Record& record) {
  Record previous;
  if (!p.descriptors.put(record, &previous)) return false;
  if (previous.key != 0)
    let_go(p, previous.bytes);  // Closed, and its number was assigned again.
  else
    p.descriptor_count.fetch_add(1, std::memory_order_relaxed);
  return true;
}

}  // namespace

void hold_by_descriptor(Process& p, int fd, uint64_t physical) {
  const uint32_t fingerprint = fingerprint_of(fd);
  if (fingerprint == 0) return;
  hold(p, physical);
  const uint64_t round = p.descriptor_round.load(std::memory_order_relaxed);
  // Without memory for the record the hold stays: charged for longer than necessary, never shorter.
  enter(p, descriptor_record(fd, fingerprint, physical, round));
}

bool settle_open_descriptors(Process& p) {
  if (!p.settling.try_lock()) return false;  // Another thread is checking.
  const uint64_t from = p.descriptor_round.load(std::memory_order_relaxed), to = from ^ 1;
  p.descriptor_round.store(to, std::memory_order_relaxed);
  bool any = false;
  for (bool more = true; more;) {
    Record seen[32];
    unsigned count = 0;
    more = false;
    p.descriptors.take_some_of(from, [&](const Record& r) {
      seen[count++] = r;
      return !(more = count == std::size(seen));
    });
    p.descriptor_count.fetch_sub(count, std::memory_order_relaxed);
    for (unsigned i = 0; i < count; ++i) {
      Record& r = seen[i];
      r.context = to;
      if (fingerprint_of(static_cast<int>(r.key - 1)) == r.uses) {
        enter(p, r);
      } else {
        let_go(p, r.bytes);
        any = true;
      }
    }
  }
  p.settling.unlock();
  return any;
}

}  // namespace carve::guest
