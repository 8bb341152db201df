// Charges a slice's budget such that no byte is lost if the process is killed at any instruction.
//
// All processes of a slice share one word per device: the bytes charged. It is changed by a compare and
// exchange in 20 ns, without a lock. When a process is killed, exactly the bytes that it held must be
// released. The kill may come between the exchange and any record of it. So the word has 16 bytes and names
// its last change (Tag). Each writer has a lane, in which it announces a change *before* it tries it:
//
//   1. change[n % 2] = {from, to}     what the lane holds before and after
//   2. announced = n
//   3. lane of the word's tag: seen = max(seen, its number)   the previous change is now on record twice
//   4. exchange {used, tag} -> {used + to - from, (this lane, n)}
//   5. seen = n, then budget.recorded = (this lane, n)        so that the next writer may omit step 3
//
// Step 3 costs a cache miss, and another one at the other writer's next change. Because of step 5, a writer
// touches only the word's line and its own, as long as the other writers are alive.
//
// A later reader finds out whether change n happened. It reads the word first and `seen` second. The change
// happened if either names it. If neither does, it will never happen. So the lane of a dead process has an
// exact total, and the agent releases it by one more change *on the dead lane itself*. If the agent is killed
// too, the next agent reads the same words and finds the total already zero.
//
// Bytes can also move between lanes: two lanes change in one exchange (move()). The word can name only one of
// the two changes. The other lane names that change as `joined`, and its own change happened if that one did.
//
// A lane may hold more than its allocations use: spare and withdrawn bytes (spare.h). A change withdraws the
// lane's own spare bytes before step 1, and its exchange releases all bytes that were withdrawn from the
// lane.
//
// A lane has one writer at a time: while the process is alive, the thread that claimed it (guest/quota);
// afterwards, the agent. The lane of a shared block has the writer that the block's state names
// (shared_blocks.h). Every index read from shared memory is checked, because any process of the slice may
// have written it.
#pragma once

#include <algorithm>
#include <climits>

#include "wire/shm/layout.h"
#include "wire/shm/spare.h"

namespace carve::shm {

// The last change of a budget word: the change's number in the high bits, the lane in the low 20 bits.
struct Tag {
  uint64_t value = 0;  // 0 before the first change.

  static constexpr unsigned agent = 0xffff;
  static constexpr unsigned first_block = 0x8000;  // From here up to `agent`: lanes of shared blocks.
  static constexpr Tag of(unsigned process, unsigned lane, uint64_t number) {
    return {number << 20 | uint64_t{lane} << 16 | process};
  }
  constexpr unsigned process() const { return value & 0xffff; }
  constexpr unsigned lane() const { return value >> 16 & 0xf; }
  constexpr uint64_t number() const { return value >> 20; }

  // Returns whether the other change was made on the same lane.
  constexpr bool same_lane(Tag other) const { return ((value ^ other.value) & 0xf'ffff) == 0; }

  // Numbers have 44 bits, enough for years of changes. Further bits, which an overwritten lane may have, are
  // ignored.
  static constexpr uint64_t numbers = (uint64_t{1} << 44) - 1;
  static constexpr uint64_t after(uint64_t number) {
    return ((number + 1) & numbers) != 0 ? (number + 1) & numbers : 2;
  }
};

// The position of a lane in Charges.
struct LaneId {
  unsigned device = 0;
  unsigned process = 0;  // Tag::agent: the agent's own lane; Tag::first_block + n: that of shared block n.
  unsigned lane = 0;
  bool operator==(const LaneId&) const = default;
};
static_assert(max_processes <= Tag::first_block && Tag::first_block + max_shared_blocks <= Tag::agent);

// Returns null if the id does not name a lane; it may come from an overwritten tag.
inline Lane* find_lane(Charges& charges, const LaneId& id) {
  if (id.device >= max_devices) return nullptr;
  if (id.process == Tag::agent) return &charges.growth[id.device];
  if (id.process >= Tag::first_block && id.process - Tag::first_block < max_shared_blocks)
    return &charges.block[id.process - Tag::first_block].lane;
  if (id.process >= max_processes || id.lane >= lanes) return nullptr;
  return &charges.process[id.process].lane[id.device][id.lane];
}

// Returns null for a lane that never has spare bytes: a lane of a process that met no other writer, the
// agent's lane, and the lane of a shared block.
inline Spare* find_spare(Charges& charges, const LaneId& id) {
  if (id.device >= max_devices || id.process >= max_processes || id.lane >= lanes) return nullptr;
  if (!may_have_spare(charges, id.device, id.process)) return nullptr;
  return &charges.process[id.process].spare[id.device][id.lane];
}

// Points at which a test may stop a change. Production code passes none.
struct NoStops {
  constexpr void operator()() const {}
};

struct Word {
  uint64_t used, tag;
};

// Reads the two halves separately. An exchange that starts from a torn pair fails.
inline Word read(const Budget& budget) {
  return {__atomic_load_n(&budget.used, __ATOMIC_ACQUIRE), __atomic_load_n(&budget.tag, __ATOMIC_ACQUIRE)};
}

// Written as the instruction, because ThreadSanitizer replaces the builtin with a lock that works only within
// one process.
inline bool exchange(Budget& budget, Word expected, Word desired) {
  bool done = false;
  auto* word = reinterpret_cast<unsigned __int128*>(&budget.used);
  __asm__ volatile("lock cmpxchg16b %1"
                   : "=@ccz"(done), "+m"(*word), "+a"(expected.used), "+d"(expected.tag)
                   : "b"(desired.used), "c"(desired.tag)
                   : "memory");
  return done;
}

// Records in the lane of `tag` that its change reached the word. `self` is the caller's own lane, if it holds
// one. No other writer stores a higher number there, so a plain store also yields the maximum. The store
// becomes visible before the exchange that follows, which is a full barrier. This saves a fifth of the cost
// of a change if a process has a device to itself.
inline void record_change(Charges& charges, unsigned device, Tag tag, const Lane* self = nullptr) {
  if (tag.number() == 0) return;
  Lane* lane = find_lane(charges, {device, tag.process(), tag.lane()});
  if (lane == nullptr) return;
  if (lane == self) {
    lane->seen.store(tag.number(), std::memory_order_release);
    return;
  }
  uint64_t seen = lane->seen.load(std::memory_order_acquire);
  while (seen < tag.number() && !lane->seen.compare_exchange_weak(seen, tag.number())) {}
}

// A budget word before its replacement, and whether the writer of its last change has recorded that change.
struct Previous {
  Word word;
  bool recorded;
};

// Reads `recorded` before the word. On AMD's family 25 the other order makes a charge and its release 15 ns
// slower (73 instead of 58). Both orders are correct, because a recorded change stays recorded.
inline Previous read_previous(const Budget& budget) {
  const uint64_t recorded = budget.recorded.load(std::memory_order_acquire);
  const Word word = read(budget);
  return {word, word.tag == recorded};
}

// The content of a lane after its last change that happened.
struct Holding {
  uint64_t bytes = 0;     // Including spare and withdrawn bytes.
  uint32_t returned = 0;  // Number of withdrawn bytes that it has returned (spare.h).
  bool stable = true;     // False if its writer announced another change in the meantime.
};
Holding read_holding(Charges& charges, const LaneId& id);

// Returns the bytes that the lane holds, even if its writer was killed during its last change. Requires that
// no thread writes the lane.
inline uint64_t holding(Charges& charges, const LaneId& id) { return read_holding(charges, id).bytes; }

// The bytes that allocations use on a device, and a number that changes whenever those bytes change.
struct InUse {
  uint64_t bytes = 0;
  uint64_t version = 0;
};
InUse in_use(Charges& charges, unsigned device);

// Returns the bytes of a lane that allocations use. Requires that no thread writes the lane.
uint64_t in_use_by(Charges& charges, const LaneId& id);

// Whether `needed` bytes more than the word `now` allows fit within the limit, because lanes other than
// `self` hold that many bytes that no allocation uses. If necessary, their spare bytes are withdrawn.
enum class Room { enough, none, unknown };  // unknown: a lane or the word changed in the meantime.
Room make_room(Charges& charges, const LaneId& self, Word now, uint64_t needed);

// Waits 0.2 to 0.7 us after another writer won an exchange. Writers that retry immediately pass the word's
// cache line back and forth for every change. If they wait, the winner makes several changes while the line
// stays in its processor. With two threads, a charge and its release then take 50 ns instead of 200 ns.
inline void step_back() {
  for (int pauses = 0; pauses < 16; ++pauses) __builtin_ia32_pause();
}

// A lane's spare bytes (null if it never has any), and the number that its next change returns.
struct OwnSpare {
  Spare* lane = nullptr;
  Spare::Returned returned = {0, 0};
};

// Withdraws the lane's spare bytes. The change that follows returns all bytes that were withdrawn from the
// lane. Inlined, because a call passes the id through memory and makes a change 10 ns slower.
template <class Stop>
[[gnu::always_inline]] inline OwnSpare withdraw_own(Charges& charges, const LaneId& id, Stop stop) {
  Spare* const lane = find_spare(charges, id);
  if (lane == nullptr) [[likely]]
    return {};
  const uint32_t all = withdraw_spare(*lane);
  stop();
  return {lane, {read_holding(charges, id).returned, all}};
}

// Announces a change of the lane, and returns its number.
template <class Stop>
[[gnu::always_inline]] inline uint64_t announce(Lane& lane, const OwnSpare& spare, uint64_t from, uint64_t to,
                                                Stop stop) {
  const uint64_t number = Tag::after(lane.announced.load(std::memory_order_relaxed));
  stop();
  if (spare.lane != nullptr) {
    spare.lane->returned[number % 2].store(spare.returned, std::memory_order_relaxed);
    stop();
  }
  __atomic_store_n(&lane.change[number % 2].from, from, __ATOMIC_RELAXED);
  stop();
  __atomic_store_n(&lane.change[number % 2].to, to, __ATOMIC_RELAXED);
  stop();
  lane.announced.store(number, std::memory_order_release);
  stop();
  return number;
}

// Returns whether more bytes are in use after the change than before.
inline bool grows(uint64_t from, uint64_t to, const OwnSpare& own) {
  return to > from - std::min(from, withdrawn_between(own.returned.from, own.returned.to));
}

// The information that the writer of a change gets from it.
struct Learned {
  bool other_writer = false;  // The previous change was another lane's.
  uint32_t returned = 0;      // Holding::returned of the lane; in move(), of the lane `less`.
};

// Makes one change: `id` will hold `to` bytes, all of them in use, instead of `from`, of which some may be
// spare or withdrawn. Returns false and changes nothing if the bytes in use would exceed `limit`, or if other
// writers changed the word first at each of `attempts`. A decrease is never refused.
//
// Inlined, because a call makes a charge and its release 25 ns slower (79 instead of 54 on AMD's family 26):
// `id` and `learned` then pass through memory between two locked instructions.
template <class Stop = NoStops>
[[gnu::always_inline]] inline bool change(Charges& charges, LaneId id, uint64_t from, uint64_t to,
                                          uint64_t limit, Stop stop = {}, unsigned attempts = UINT_MAX,
                                          Learned* learned = nullptr) {
  Lane* lane = find_lane(charges, id);
  if (lane == nullptr) return false;
  Budget& budget = charges.budget[id.device];
  // Requests the cache line for writing, so that the read and the exchange need only one transfer. GCC's
  // builtin requests it for reading unless all processors of the build's target have the instruction.
  __asm__ volatile("prefetchw %0" : : "m"(budget.used));
  const OwnSpare own = withdraw_own(charges, id, stop);
  const uint64_t number = announce(*lane, own, from, to, stop);
  for (unsigned attempt = 0; attempt < attempts; ++attempt) {
    const auto [now, recorded] = read_previous(budget);
    uint64_t after = 0;
    if (to >= from) {
      if (__builtin_add_overflow(now.used, to - from, &after)) return false;
    } else {
      after = now.used > from - to ? now.used - (from - to) : 0;
    }
    if (after > limit && grows(from, to, own)) [[unlikely]] {
      const Room room = make_room(charges, id, now, after - limit);
      if (room == Room::none) return false;
      if (room == Room::unknown) {
        step_back();
        continue;
      }
    }
    stop();
    if (!recorded) record_change(charges, id.device, Tag{now.tag}, lane);
    stop();
    const Tag tag = Tag::of(id.process, id.lane, number);
    if (!exchange(budget, now, {after, tag.value})) {
      step_back();
      continue;
    }
    stop();
    lane->seen.store(number, std::memory_order_release);
    stop();
    budget.recorded.store(tag.value, std::memory_order_release);
    if (learned != nullptr) *learned = {!tag.same_lane({now.tag}), own.returned.to};
    return true;
  }
  return false;
}

struct LaneChange {
  LaneId id;
  uint64_t from = 0, to = 0;
};

// Changes two lanes of one device together, or neither, so that no reader counts the bytes twice or not at
// all. Only for bytes that are already charged, so no limit applies. Returns false and changes nothing if
// other writers changed the word first at each of `attempts`. The caller is the writer of both lanes, and a
// dead caller's lane `less` is reclaimed before the lane `more` changes again.
template <class Stop = NoStops>
bool move(Charges& charges, const LaneChange& less, const LaneChange& more, Stop stop = {},
          unsigned attempts = UINT_MAX, Learned* learned = nullptr) {
  Lane *source = find_lane(charges, less.id), *target = find_lane(charges, more.id);
  if (source == nullptr || target == nullptr || source == target || less.id.device != more.id.device)
    return false;
  Budget& budget = charges.budget[more.id.device];
  const OwnSpare of_source = withdraw_own(charges, less.id, stop),
                 of_target = withdraw_own(charges, more.id, stop);
  const uint64_t number = announce(*target, of_target, more.from, more.to, stop);
  const Tag tag = Tag::of(more.id.process, more.id.lane, number);
  source->joined.store(tag.value, std::memory_order_relaxed);
  stop();
  source->joined_number.store(Tag::after(source->announced.load(std::memory_order_relaxed)),
                              std::memory_order_release);
  stop();
  const uint64_t joined = announce(*source, of_source, less.from, less.to, stop);
  for (unsigned attempt = 0; attempt < attempts; ++attempt) {
    const auto [now, recorded] = read_previous(budget);
    const uint64_t after = now.used + (less.to - less.from) + (more.to - more.from);
    if (!recorded) record_change(charges, more.id.device, Tag{now.tag}, target);
    stop();
    if (!exchange(budget, now, {after, tag.value})) {
      step_back();
      continue;
    }
    stop();
    source->seen.store(joined, std::memory_order_release);
    stop();
    target->seen.store(number, std::memory_order_release);
    stop();
    budget.recorded.store(tag.value, std::memory_order_release);
    if (learned != nullptr) *learned = {false, of_source.returned.to};
    return true;
  }
  source->joined_number.store(0, std::memory_order_release);
  return false;
}

// A malicious slice can change a word without pause. The agent makes this many attempts, and tries again
// later.
inline constexpr unsigned agent_attempts = 1000;

// Releases all that a process slot holds, on all devices. Only the agent calls it, after the process is dead.
// Returns false if a word changed at every attempt, in which case it must be called again.
template <class Stop = NoStops>
bool reclaim(Charges& charges, unsigned process, Stop stop = {}) {
  bool done = true;
  for (unsigned device = 0; device < max_devices; ++device) {
    for (unsigned lane = 0; lane < lanes; ++lane) {
      const LaneId id{device, process, lane};
      const uint64_t held = holding(charges, id);
      if (held != 0 && !change(charges, id, held, 0, UINT64_MAX, stop, agent_attempts)) done = false;
      stop();
    }
  }
  // If the report was overwritten, the repair of one lane can reveal another lane's change.
  for (unsigned device = 0; device < max_devices; ++device)
    for (unsigned lane = 0; lane < lanes; ++lane)
      if (holding(charges, {device, process, lane}) != 0) done = false;
  for (unsigned device = 0; done && device < max_devices; ++device)
    unmark_spare(charges, device, process, stop);
  return done;
}

}  // namespace carve::shm
