// Memory that a process exported and that may outlive the process: charged to the slice until no process can
// use it any more.
//
// Exported memory lives while any process holds it: the exporter, every importer, and every open descriptor
// that names it, also one on its way through a socket. So its charge belongs to no process. At the export the
// bytes move from the exporter's lane to the lane of a SharedBlock, in one exchange (budget.h, move()). They
// are released when both of these hold:
//
//   1. No process holds the block. A process sets its bit in `holder` before it asks the driver for the
//      memory, and clears the bit after the driver released the memory. The agent clears the bits of a dead
//      process.
//   2. No descriptor names the block. The exporter locks one byte of each exported descriptor, at the offset
//      `name` (F_OFD_SETLK). The kernel drops the lock with the last copy of the descriptor, and lists all
//      locks in /proc/locks. Memory that is opened by a handle has no descriptor.
//
// Either alone proves nothing, and they are read in this order: after 2 no process can begin an import, and
// one that began before has set its bit. So release_block() reads the bits once more, after it has changed
// the state. An importer sets its bit first and reads the state then, so one of the two sees the other. A
// process that set its bit after 1 may have exported the memory anew after 2, and cleared its bit again. So
// each process counts itself in `joins` before it sets its bit, and a block is released only if no process
// did so since before 1.
//
//   state      writer of the lane             after its death the agent
//   free       none                           -
//   moving     the exporter                   releases the block: no other process has seen it
//   held       none                           clears its bit
//   releasing  the process that changes it    sets it back to held
//
// Every value may be overwritten by a process of the slice, which then harms its own slice alone.
#pragma once

#include <iterator>

#include "wire/shm/budget.h"

namespace carve::shm {

enum class SharedBlockState : uint8_t { free = 0, moving, held, releasing };

enum class SharedBlockKind : uint32_t {
  descriptor = 1,  // Named by the locks of its descriptors.
  handle,          // Named by a hash of its IPC handle.
  pool,            // A memory pool. Its descriptors keep no memory; `name` only identifies it.
  bound,           // Memory of a multicast object, of which other processes have no name: see `within`.
  unnamed,         // Its descriptor could not be locked. It stays charged until the slice ends.
};

// The name of a descriptor is the offset of its lock: random, with the block's index in the low bits. No
// program locks bytes at 4 EiB. The name of an IPC handle is a hash with the highest bit, which no offset
// has.
inline constexpr uint64_t first_lock_name = uint64_t{1} << 62;
constexpr uint64_t lock_name_of(uint64_t random, unsigned block) {
  return first_lock_name | (random % first_lock_name & ~uint64_t{max_shared_blocks - 1}) | block;
}
static_assert((max_shared_blocks & (max_shared_blocks - 1)) == 0);
constexpr uint64_t handle_name_of(uint64_t hash) { return hash | uint64_t{1} << 63; }
constexpr bool is_lock_name(uint64_t name) { return name >= first_lock_name && name < first_lock_name * 2; }

// Which process changes a block: its slot, or Tag::agent.
constexpr uint64_t block_word(SharedBlockState state, unsigned slot = 0) {
  return uint64_t{slot} << 8 | static_cast<uint64_t>(state);
}
constexpr SharedBlockState state_of(uint64_t word) { return static_cast<SharedBlockState>(word & 0xff); }
constexpr unsigned slot_of(uint64_t word) { return static_cast<unsigned>(word >> 8 & 0xffff); }

inline unsigned block_end(const Charges& charges) {
  const uint64_t end = charges.block_end.load(std::memory_order_acquire);
  return end < max_shared_blocks ? static_cast<unsigned>(end) : max_shared_blocks;
}

inline LaneId lane_of(const Charges& charges, unsigned block) {
  return {charges.block[block].device.load(std::memory_order_relaxed), Tag::first_block + block, 0};
}

inline bool has_holder(const SharedBlock& block) {
  for (const auto& word : block.holder)
    if (word.load() != 0) return true;
  return false;
}
inline bool has_holder(const SharedBlock& block, unsigned slot) {
  return (block.holder[slot / 64].load() >> slot % 64 & 1) != 0;
}
inline bool holds_blocks(const Charges& charges, unsigned slot) {
  for (unsigned i = 0, end = block_end(charges); i < end; ++i)
    if (has_holder(charges.block[i], slot)) return true;
  return false;
}
inline void add_holder(SharedBlock& block, unsigned slot) {
  block.joins.fetch_add(1);
  block.holder[slot / 64].fetch_or(uint64_t{1} << slot % 64);
}
inline void remove_holder(SharedBlock& block, unsigned slot) {
  if (has_holder(block, slot)) block.holder[slot / 64].fetch_and(~(uint64_t{1} << slot % 64));
}

// Returns the bytes of all blocks of a device.
inline uint64_t shared_bytes(Charges& charges, unsigned device) {
  uint64_t bytes = 0;
  for (unsigned i = 0, end = block_end(charges); i < end; ++i)
    if (lane_of(charges, i).device == device) bytes += holding(charges, lane_of(charges, i));
  return bytes;
}

inline constexpr unsigned no_block = ~0u;

// Takes a free block for the process in `slot`, which holds it from then on. The process moves the bytes to
// its lane and then calls publish(). `name`: random for a descriptor's name, of which the low bits are
// replaced. Returns no_block if all are taken.
template <class Stop = NoStops>
unsigned begin_block(Charges& charges, unsigned slot, unsigned device, SharedBlockKind kind, uint64_t name,
                     uint64_t within = 0, Stop stop = {}) {
  for (unsigned i = 0; i < max_shared_blocks; ++i) {
    SharedBlock& block = charges.block[i];
    uint64_t is_free = block_word(SharedBlockState::free);
    if (block.state.load(std::memory_order_relaxed) != is_free) continue;
    uint64_t end = charges.block_end.load(std::memory_order_relaxed);
    while (end <= i && !charges.block_end.compare_exchange_weak(end, i + 1)) {}
    stop();
    if (!block.state.compare_exchange_strong(is_free, block_word(SharedBlockState::moving, slot))) continue;
    stop();
    block.device.store(device, std::memory_order_relaxed);
    stop();
    block.kind.store(static_cast<uint32_t>(kind), std::memory_order_relaxed);
    stop();
    block.within.store(within, std::memory_order_relaxed);
    stop();
    block.keep.store(UINT64_MAX, std::memory_order_relaxed);
    stop();
    block.exporter.store(slot, std::memory_order_relaxed);
    stop();
    block.own_imports.store(0, std::memory_order_relaxed);
    stop();
    add_holder(block, slot);
    stop();
    block.name.store(is_lock_name(name) ? lock_name_of(name, i) : name);
    stop();
    return i;
  }
  return no_block;
}

// Other processes can find the block from now on.
inline void publish(SharedBlock& block) { block.state.store(block_word(SharedBlockState::held)); }

// Returns the block of that name, or no_block. It may be on its way out: add_holder(), then is_held().
inline unsigned find_block(const Charges& charges, uint64_t name) {
  const auto is = [&](unsigned i) {
    return charges.block[i].name.load() == name &&
           state_of(charges.block[i].state.load()) != SharedBlockState::free;
  };
  if (is_lock_name(name)) {
    const auto index = static_cast<unsigned>(name % max_shared_blocks);
    return is(index) ? index : no_block;
  }
  for (unsigned i = 0, end = block_end(charges); i < end; ++i)
    if (is(i)) return i;
  return no_block;
}
inline bool is_held(const SharedBlock& block, uint64_t name) {
  return state_of(block.state.load()) == SharedBlockState::held && block.name.load() == name;
}

// Releases the charge of a block whose state names this process, and frees the block. Returns false if the
// budget changed at every attempt: call again.
template <class Stop = NoStops>
bool finish_block(Charges& charges, unsigned index, Stop stop = {}, unsigned attempts = UINT_MAX) {
  SharedBlock& block = charges.block[index];
  const LaneId id = lane_of(charges, index);
  const uint64_t bytes = holding(charges, id);
  if (bytes != 0 && !change(charges, id, bytes, 0, UINT64_MAX, stop, attempts)) return false;
  stop();
  block.name.store(0);
  stop();
  block.state.store(block_word(SharedBlockState::free));
  return true;
}

// Releases the block if no process holds it. The caller has read `joins`, then the bits, and then found that
// no descriptor of that name is left. `slot` is the caller's, or Tag::agent. Returns whether it is released.
template <class Stop = NoStops>
bool release_block(Charges& charges, unsigned index, uint64_t name, uint32_t joins, unsigned slot,
                   Stop stop = {}, unsigned attempts = UINT_MAX) {
  SharedBlock& block = charges.block[index];
  uint64_t held = block_word(SharedBlockState::held);
  const uint64_t releasing = block_word(SharedBlockState::releasing, slot);
  if (!block.state.compare_exchange_strong(held, releasing)) return false;
  stop();
  if (!has_holder(block) && block.joins.load() == joins && block.name.load() == name &&
      finish_block(charges, index, stop, attempts))
    return true;
  block.state.store(block_word(SharedBlockState::held));
  return false;
}

// Returns whether a process other than that in `slot` holds the block.
inline bool has_other_holder(const SharedBlock& block, unsigned slot) {
  for (unsigned i = 0; i < std::size(block.holder); ++i) {
    const uint64_t own = i == slot / 64 ? uint64_t{1} << slot % 64 : 0;
    if ((block.holder[i].load() & ~own) != 0) return true;
  }
  return false;
}

// Returns whether something else than the pool of the process in `slot` holds the pool's block: another
// process, or this one by an import of its own pool. An import is counted before the driver is asked for it,
// and the pool's memory is released in the driver before this is called, so no import is missed.
inline bool is_pool_held_beside(const SharedBlock& block, unsigned slot) {
  return has_other_holder(block, slot) || block.own_imports.load() != 0;
}

// Takes the block's lane for one change; the caller then calls publish(). Returns false if another process
// has it.
inline bool take_lane(SharedBlock& block, unsigned slot) {
  uint64_t held = block_word(SharedBlockState::held);
  return block.state.compare_exchange_strong(held, block_word(SharedBlockState::releasing, slot));
}

// Releases what a pool released while other processes held it, if none of them does any more. Returns whether
// it released any.
template <class Stop = NoStops>
bool lower_pool(Charges& charges, unsigned index, unsigned slot, Stop stop = {},
                unsigned attempts = UINT_MAX) {
  SharedBlock& block = charges.block[index];
  const LaneId id = lane_of(charges, index);
  if (block.kind.load(std::memory_order_relaxed) != static_cast<uint32_t>(SharedBlockKind::pool) ||
      holding(charges, id) <= block.keep.load() || !take_lane(block, slot))
    return false;
  stop();
  const uint64_t bytes = holding(charges, id), keep = block.keep.load();
  const bool lowered =
      !is_pool_held_beside(block, block.exporter.load(std::memory_order_relaxed) % max_processes) &&
      keep < bytes && change(charges, id, bytes, keep, UINT64_MAX, stop, attempts);
  stop();
  publish(block);
  return lowered;
}

// What may be done with a block now.
enum class SharedBlockUse { in_use, has_no_holder, may_have_descriptors };
inline SharedBlockUse use_of(const Charges& charges, const SharedBlock& block) {
  if (state_of(block.state.load()) != SharedBlockState::held || has_holder(block))
    return SharedBlockUse::in_use;
  const uint64_t within = block.within.load(std::memory_order_relaxed);
  if (is_lock_name(within) && find_block(charges, within) != no_block) return SharedBlockUse::in_use;
  switch (static_cast<SharedBlockKind>(block.kind.load(std::memory_order_relaxed))) {
    case SharedBlockKind::descriptor: return SharedBlockUse::may_have_descriptors;
    case SharedBlockKind::unnamed: return SharedBlockUse::in_use;
    case SharedBlockKind::handle:
    case SharedBlockKind::pool:
    case SharedBlockKind::bound: break;
  }
  return SharedBlockUse::has_no_holder;
}

inline constexpr unsigned every_device = ~0u;

// A block that only descriptors may hold, with what was read before the look for descriptors: release_block()
// needs both.
struct BlockQuestion {
  unsigned block = 0;
  uint64_t name = 0;
  uint32_t joins = 0;
};

// Looks at the blocks of [from, end) of a device (or of all devices) until `most` of them are in question.
// Releases those that no process holds and no descriptor can hold. Writes the others that no process holds to
// `questions`, and their number to `count`. Returns the first block that it did not look at.
template <class Stop = NoStops>
unsigned ask_blocks(Charges& charges, unsigned device, unsigned slot, unsigned from, unsigned end,
                    BlockQuestion* questions, unsigned most, unsigned& count, bool& any_released,
                    Stop stop = {}, unsigned attempts = UINT_MAX) {
  unsigned next = from;
  for (count = 0; next < end && count < most; ++next) {
    const SharedBlock& block = charges.block[next];
    const uint32_t joins = block.joins.load();
    const SharedBlockUse use = use_of(charges, block);
    if (use == SharedBlockUse::in_use) {
      any_released |= lower_pool(charges, next, slot, stop, attempts);
      continue;
    }
    if (device != every_device && block.device.load(std::memory_order_relaxed) != device) continue;
    const uint64_t name = block.name.load();
    if (use == SharedBlockUse::may_have_descriptors)
      questions[count++] = {next, name, joins};
    else
      any_released |= release_block(charges, next, name, joins, slot, stop, attempts);
  }
  return next;
}

// Releases all blocks of a device (or of all devices) that no process and no descriptor holds.
// `erase_locked(names, count)` sets those names to 0 that a descriptor still has; it is called once for each
// `batch` of names. Returns whether any was released.
template <unsigned batch = 64, class EraseLocked, class Stop = NoStops>
bool settle_blocks(Charges& charges, unsigned device, unsigned slot, EraseLocked erase_locked, Stop stop = {},
                   unsigned attempts = UINT_MAX) {
  const unsigned end = block_end(charges);
  bool any = false;
  for (unsigned next = 0; next < end;) {
    BlockQuestion questions[batch];
    unsigned count = 0;
    next = ask_blocks(charges, device, slot, next, end, questions, batch, count, any, stop, attempts);
    uint64_t names[batch];
    for (unsigned i = 0; i < count; ++i) names[i] = questions[i].name;
    if (count != 0) erase_locked(names, count);
    for (unsigned i = 0; i < count; ++i)
      if (names[i] != 0)
        any |= release_block(charges, questions[i].block, names[i], questions[i].joins, slot, stop, attempts);
  }
  return any;
}

// Ends what a dead process did with blocks, after its lanes are reclaimed (budget.h). Only the agent calls
// it. Its own unfinished releases, from before a restart, have Tag::agent as slot. Returns false if a word
// changed at every attempt: call again.
template <class Stop = NoStops>
bool leave_blocks(Charges& charges, unsigned slot, Stop stop = {}) {
  const unsigned end = block_end(charges);
  bool done = true;
  for (unsigned i = 0; i < end; ++i) {
    SharedBlock& block = charges.block[i];
    const uint64_t word = block.state.load();
    const bool is_its = state_of(word) != SharedBlockState::held && slot_of(word) == slot;
    const bool is_releasing = is_its && state_of(word) == SharedBlockState::releasing;
    if (slot < max_processes) {
      if (block.exporter.load(std::memory_order_relaxed) == slot) block.keep.store(UINT64_MAX);
      stop();
      remove_holder(block, slot);
    }
    stop();
    if ((is_its && state_of(word) == SharedBlockState::moving) || (is_releasing && block.name.load() == 0))
      done &= finish_block(charges, i, stop, agent_attempts);
    else if (is_releasing)
      block.state.store(block_word(SharedBlockState::held));
    stop();
  }
  return done;
}

// Finds the names of locked descriptors in the text of /proc/locks or of /proc/PID/fdinfo/FD, of which a
// line ends with the first and the last locked byte. The text comes in pieces of any size.
class LockReader {
 public:
  // Calls `locked(name)` for each.
  template <class Locked>
  void read(const char* text, size_t size, Locked locked) {
    for (size_t i = 0; i < size; ++i) {
      const char c = text[i];
      if (c >= '0' && c <= '9') {
        word_ = word_ * 10 + static_cast<uint64_t>(c - '0');
      } else if (c == '\n') {
        if (before_ >= first_lock_name && before_ == word_ && is_number_) locked(before_);
        before_ = word_ = 0;
        is_number_ = true;
      } else if (c == ' ' || c == '\t') {
        before_ = is_number_ ? word_ : 0;
        word_ = 0;
        is_number_ = true;
      } else {
        is_number_ = false;
      }
    }
  }

 private:
  uint64_t word_ = 0, before_ = 0;
  bool is_number_ = true;
};

// Reads the kernel's list of locks until it is complete. `read(piece)` reads the whole list, calls
// piece(text, size) for each part, and returns false if it cannot; `locked(name)` is called for each name,
// also more than once. The kernel lists locks page by page, and an unlocking between two pages may hide one
// lock. Two equal lists in a row are complete. Returns false without them: every name counts as locked then.
template <class Read, class Locked>
bool read_locked_names(Read read, Locked locked) {
  uint64_t before = 0;
  for (unsigned reads = 0; reads < 8; ++reads) {
    LockReader reader;
    uint64_t hash = 0xcbf2'9ce4'8422'2325;
    const bool readable = read([&](const char* text, size_t size) {
      for (size_t i = 0; i < size; ++i) hash = (hash ^ static_cast<unsigned char>(text[i])) * 0x100'0000'01b3;
      reader.read(text, size, locked);
    });
    if (!readable) return false;
    if (reads != 0 && hash == before) return true;
    before = hash;
  }
  return false;
}

// Sets the names to 0 that are in the kernel's list of locks, or all of them if it cannot be read.
template <class Read>
void erase_locked_names(uint64_t* names, unsigned count, Read read) {
  const bool complete = read_locked_names(read, [&](uint64_t locked) {
    for (unsigned i = 0; i < count; ++i)
      if (names[i] == locked) names[i] = 0;
  });
  if (complete) return;
  for (unsigned i = 0; i < count; ++i) names[i] = 0;
}

}  // namespace carve::shm
