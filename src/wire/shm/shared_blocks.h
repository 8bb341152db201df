// Memory that a process exported and that may outlive the process. It is charged to the slice until no
// process can use it any longer.
//
// Exported memory lives while any process holds it: the exporter, every importer, and every open descriptor
// that names it, including one in transit through a socket. So its charge belongs to no process. At the
// export the bytes move from the exporter's lane to the lane of a SharedBlock, in one exchange (budget.h,
// move()). They are released when both of these hold:
//
//   1. No process holds the block. A process sets its bit in `holder` before it requests the memory from the
//      driver, and clears the bit after the driver has released the memory. The agent clears the bits of a
//      dead process.
//   2. No descriptor names the block. The exporter locks one byte of each exported descriptor, at the offset
//      `name` (F_OFD_SETLK). The kernel drops the lock with the last copy of the descriptor, and lists all
//      locks in /proc/locks. Memory that is opened by a handle has no descriptor.
//
// Neither condition by itself is sufficient. They are checked in this order, because after 2 no process can
// begin an import, and a process that began one before has set its bit. So release_block() reads the bits
// once more, after it has changed the state. An importer sets its bit first and then reads the state, so at
// least one of the two notices the other. A process that set its bit after 1 may have exported the memory
// again after 2, and cleared its bit again. So each process counts itself in `joins` before it sets its bit,
// and a block is released only if no process has done so since before 1.
//
//   state      writer of the lane             after its death the agent
//   free       none                           -
//   moving     the exporter                   releases the block: no other process has seen it
//   held       none                           clears its bit
//   releasing  the process that changes it    sets it back to held
//
// Any process of the slice may overwrite these values, which harms only its own slice.
#pragma once

#include <iterator>

#include "wire/shm/budget.h"

namespace carve::shm {

enum class SharedBlockState : uint8_t { free = 0, moving, held, releasing };

enum class SharedBlockKind : uint32_t {
  descriptor = 1,  // Named by the locks of its descriptors.
  handle,          // Named by a hash of its IPC handle.
  pool,            // A memory pool. Its descriptors do not keep its memory; `name` only identifies it.
  bound,           // Bound to a multicast object. Other processes have no name for it; see `within`.
  unnamed,         // Its descriptor could not be locked. It stays charged until the slice ends.
};

// The name of a descriptor is the offset of its lock. It is random, with the block's index in the low bits.
// No other program locks bytes at 4 EiB. The name of an IPC handle is a hash with the highest bit set, which
// no offset has.
inline constexpr uint64_t first_lock_name = uint64_t{1} << 62;
constexpr uint64_t lock_name_of(uint64_t random, unsigned block) {
  return first_lock_name | (random % first_lock_name & ~uint64_t{max_shared_blocks - 1}) | block;
}
static_assert((max_shared_blocks & (max_shared_blocks - 1)) == 0);
constexpr uint64_t handle_name_of(uint64_t hash) { return hash | uint64_t{1} << 63; }
constexpr bool is_lock_name(uint64_t name) { return name >= first_lock_name && name < first_lock_name * 2; }

// Returns the state word of a block that a process is changing. `slot` is the process's slot, or Tag::agent.
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
// its lane and then calls publish(). For a descriptor, `name` is random, and its low bits are replaced.
// Returns no_block if all blocks are in use.
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

// Makes the block visible to other processes.
inline void publish(SharedBlock& block) { block.state.store(block_word(SharedBlockState::held)); }

// Returns the block of that name, or no_block. The block may be about to be released, so call add_holder()
// and then is_held().
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
// budget changed at every attempt, in which case it must be called again.
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

// Releases the block if no process holds it. The caller must have read `joins`, then the bits, and then found
// that no descriptor of that name is left. `slot` is the caller's slot, or Tag::agent. Returns whether it was
// released.
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

// Returns whether anything other than the pool of the process in `slot` holds the pool's block: another
// process, or this process through an import of its own pool. An import is counted before the driver is
// called for it, and the pool's memory is released in the driver before this is called, so no import is
// missed.
inline bool is_pool_held_beside(const SharedBlock& block, unsigned slot) {
  return has_other_holder(block, slot) || block.own_imports.load() != 0;
}

// Takes the block's lane for one change; the caller then calls publish(). Returns false if another process
// has the lane.
inline bool take_lane(SharedBlock& block, unsigned slot) {
  uint64_t held = block_word(SharedBlockState::held);
  return block.state.compare_exchange_strong(held, block_word(SharedBlockState::releasing, slot));
}

// Releases the bytes that a pool released while other processes held it, if none of them still holds it.
// Returns whether anything was released.
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

// The action that is possible for a block now.
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

// A block that only descriptors may hold, with the values that were read before the search for descriptors
// and that release_block() needs.
struct BlockQuestion {
  unsigned block = 0;
  uint64_t name = 0;
  uint32_t joins = 0;
};

// Checks the blocks in [from, end) of a device (or of all devices) until `most` of them need a search for
// descriptors. Releases the blocks that no process holds and no descriptor can hold. Writes the other blocks
// that no process holds to `questions`, and their number to `count`. Returns the first block that it did not
// check.
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
// `erase_locked(names, count)` sets the names of existing descriptors to 0. It is called once for each
// `batch` of names. Returns whether any block was released.
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

// Finishes what a dead process was doing with blocks, after its lanes were reclaimed (budget.h). Only the
// agent calls it. The agent's own unfinished releases from before a restart have Tag::agent as slot. Returns
// false if a word changed at every attempt, in which case it must be called again.
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

// Finds the names of locked descriptors in the text of /proc/locks or of /proc/PID/fdinfo/FD, whose lines end
// with the first and the last locked byte. The text may be passed in pieces of any size.
class LockReader {
 public:
  // Calls `locked(name)` for each name.
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

// The kernel lists locks page by page (fs/seq_file.c). A page is consistent, but a lock that is dropped
// between two pages moves the rest of the list by one, and so hides the first lock of the next page. The size
// of the first piece moves all page boundaries. So a lock that is hidden in one of these readings is in the
// middle of a page in the others, unless a dozen locks or more are dropped between two pages in every
// reading.
inline constexpr size_t lock_page_bytes = 4096;
inline constexpr size_t first_lock_pieces[] = {4096, 2048, 1024, 3072};

// Calls `locked(name)` for each name in the kernel's list of locks, possibly more than once. `read(first,
// piece)` reads the whole list in pieces of at most lock_page_bytes, of which the first has at most `first`
// bytes. It calls piece(text, size) for each piece, and returns false if the list cannot be read. Stops after
// a reading if `none_left()` returns true, which means that all names in question were found. Returns false
// if the list could not be read. Otherwise, a name that was not found is not locked.
template <class Read, class Locked, class NoneLeft>
bool read_locked_names(Read read, Locked locked, NoneLeft none_left) {
  for (const size_t first : first_lock_pieces) {
    LockReader reader;
    if (!read(first, [&](const char* text, size_t size) { reader.read(text, size, locked); })) return false;
    if (none_left()) return true;
  }
  return true;
}

// Sets the names that are in the kernel's list of locks to 0, or all names if the list cannot be read.
template <class Read>
void erase_locked_names(uint64_t* names, unsigned count, Read read) {
  unsigned left = 0;
  for (unsigned i = 0; i < count; ++i) left += names[i] != 0;
  const auto locked = [&](uint64_t name) {
    for (unsigned i = 0; i < count; ++i) {
      if (names[i] != name) continue;
      names[i] = 0;
      --left;
    }
  };
  if (read_locked_names(read, locked, [&] { return left == 0; })) return;
  for (unsigned i = 0; i < count; ++i) names[i] = 0;
}

}  // namespace carve::shm
