// Records the objects that the slice's own processes exported, so that an import of another slice's object
// can be refused.
//
// Memory that is passed between processes (IPC handles, file descriptors of the virtual memory interface and
// of pools) is charged once, to the process that allocated it. So importing another slice's object would give
// the importer memory that its own slice is not charged for. The exporter records each object, and the
// importer looks it up. Only this slice's processes map the pages. One word per object:
//
//   bits 63..24  40 bits of a hash of what names it (never all zero)
//   bits 23..16  the low byte of its process slot's generation
//   bits 15..0   the slot, so that entries of dead processes can be reused
//
// The hash selects a set of eight words. An entry is written with one store, so after a kill it is either
// complete or absent, and a lost race loses only an entry. A set that is full of entries of live processes
// may have lost an entry. An object that is missing from such a set may still be the slice's own, so its
// import is allowed. The same applies if the kernel gives all exports the same inode. A process that
// overwrites the table can only allow imports of objects that were passed to it anyway.
#pragma once

#include <optional>

#include "wire/shm/budget.h"

namespace carve::shm {

enum class Origin { own, foreign, cannot_be_told };

// Returns a hash of the bytes that identify an object: the 64 bytes of an IPC handle, or the device and inode
// of a file.
constexpr uint64_t identity_of(const unsigned char* bytes, size_t count) {
  uint64_t hash = 0xcbf2'9ce4'8422'2325;
  for (size_t i = 0; i < count; ++i) hash = (hash ^ bytes[i]) * 0x100'0000'01b3;
  hash ^= hash >> 32;  // Mixes the last bytes into the high bits.
  return hash * 0x9e37'79b9'7f4a'7c15;
}

namespace exports {

constexpr unsigned set_of(uint64_t identity) { return identity % export_sets; }
constexpr uint64_t name_of(uint64_t identity) {
  const uint64_t top = identity >> 24;
  return (top != 0 ? top : 1) << 24;
}
constexpr uint64_t owner_mask = 0xff'ffff;

inline bool alive(const Control& control, uint64_t word) {
  const uint64_t slot = word & 0xffff;
  return slot < max_processes && __atomic_load_n(&control.processes[slot].pid, __ATOMIC_RELAXED) != 0 &&
         (__atomic_load_n(&control.processes[slot].generation, __ATOMIC_RELAXED) & 0xff) ==
             (word >> 16 & 0xff);
}

}  // namespace exports

// Records that the process in `slot` exported the object. `stop` is as in a change (budget.h).
template <class Stop = NoStops>
void publish(Exports& table, const Control& control, unsigned slot, uint64_t identity, Stop stop = {}) {
  using namespace exports;
  auto& set = table.word[set_of(identity)];
  const uint64_t generation = __atomic_load_n(&control.processes[slot].generation, __ATOMIC_RELAXED) & 0xff;
  const uint64_t word = name_of(identity) | generation << 16 | slot;
  unsigned at = static_cast<unsigned>(identity >> 10) % export_ways;  // If all processes are alive.
  bool found = false;
  for (unsigned i = 0; i < export_ways; ++i) {
    const uint64_t there = set[i].load(std::memory_order_relaxed);
    if ((there & ~owner_mask) == name_of(identity)) {
      at = i;
      break;
    }
    if (!found && (there == 0 || !alive(control, there))) {
      at = i;
      found = true;
    }
  }
  stop();
  set[at].store(word, std::memory_order_release);
  stop();
}

inline Origin origin_of(const Exports& table, const Control& control, uint64_t identity) {
  using namespace exports;
  const auto& set = table.word[set_of(identity)];
  unsigned living = 0;
  for (const auto& entry : set) {
    const uint64_t there = entry.load(std::memory_order_acquire);
    if (there != 0 && (there & ~owner_mask) == name_of(identity)) return Origin::own;
    living += there != 0 && alive(control, there);
  }
  return living == export_ways ? Origin::cannot_be_told : Origin::foreign;
}

}  // namespace carve::shm
