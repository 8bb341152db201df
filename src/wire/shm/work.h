// What a slice's processes have running on a device, as the arbiter reads it, and the word by which it
// answers. FORMAT.md tells the story; the sums are here.
//
// Time is measured, not blocks: a thread estimates what each launch will take (it learns), and after every
// `ControlDevice::batch_ns` of estimated work on a stream it lets the device itself write how far the stream
// has come (cuStreamWriteValue64). Estimates only say where to put the next marker and when to look; what is
// charged is time in which something was running.
//
// Everything is a plain store by its one writer, so a kill leaves a word old or new. A slice can write
// anything here; the arbiter clips what it reads to the time that passed, so a liar harms himself.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace carve::shm {

inline constexpr unsigned work_threads = 64;  // Of one process and device, that launch; more share the last.
inline constexpr unsigned work_streams = 64;  // In use at once; a complete one's place is taken again.

// One thread of the slice on one device. It alone writes the line, except the last one of a process, which
// all threads beyond share, with atomic additions.
struct alignas(64) ThreadWork {
  std::atomic<uint64_t> submitted;      //  0  Estimated ns of all it ever submitted, at least 1 a call.
  std::atomic<uint64_t> unfenced;       //  8  Of these, what was submitted after the last marker.
  std::atomic<uint64_t> busy;           // 16  BusyWord.
  std::atomic<uint64_t> waiting_since;  // 24  CLOCK_MONOTONIC ns: it stands at a closed gate; 0: it does not.
  std::atomic<uint64_t> waited;         // 32  ns it ever stood there.
  std::atomic<uint64_t> longest;        // 40  ns: the longest single launch that it learned of.
  std::atomic<uint32_t> device;         // 48  Index in Control::devices plus one; 0: the place is free.
  std::atomic<uint32_t> flags;          // 52  thread_*
  std::atomic<uint64_t> idle_at;        // 56  CLOCK_MONOTONIC ns: when `busy` last became idle.
};
static_assert(sizeof(ThreadWork) == 64);

inline constexpr uint32_t thread_synchronises = 1;    // Inside a call that waits for the device.
inline constexpr uint32_t thread_back_pressured = 4;  // Waits for its own work to end, to launch more.

// One stream. Both words count estimated ns of work put on it.
struct StreamWork {
  std::atomic<uint64_t> fenced;  //  0  What the last marker will write. By the process, under its own lock.
  std::atomic<uint64_t> completed;  //  8  By the device. Equal to `marked`: nothing marked is left.
  std::atomic<uint32_t> device;     // 16  Index in Control::devices plus one; 0: the place is free.
  uint32_t unused[3];               // 20
};
static_assert(sizeof(StreamWork) == 32);

// What moves StreamWork::completed.
enum class FenceKind : uint32_t {
  none = 0,    // No marker was needed yet.
  memory = 1,  // The device writes the word.
  events = 2,  // The process does, when it finds an event complete: in its own calls, so late.
};

// One process. The first page is registered with the driver, so that the device can write to it.
struct ProcessWork {
  StreamWork stream[work_streams];     //    0
  std::atomic<uint32_t> threads_used;  // 2048  No thread's place beyond was ever taken.
  std::atomic<uint32_t> streams_used;  // 2052
  std::atomic<uint64_t> copied[3];   // 2056  Bytes that copies moved: to the device, to the host, inside it.
  std::atomic<uint32_t> fence_kind;  // 2080  Marks: how the process sees its streams' completion.
  uint32_t reserved;                 // 2084
  uint64_t unused[(4096 - 2088) / 8];
  ThreadWork thread[work_threads];  // 4096
};
static_assert(offsetof(ProcessWork, threads_used) == 2048 && offsetof(ProcessWork, thread) == 4096);
static_assert(sizeof(ProcessWork) == 8192);

// How long a thread has had work on the device, in one word so that one store changes it. Idle: the total,
// shifted. Busy: `begin - total`, shifted, with the low bit set, so that the total at any `now` is
// `now - (begin - total)`. 63 bits of ns are 292 years.
struct BusyWord {
  uint64_t value = 0;

  static constexpr BusyWord idle(uint64_t total) { return {total << 1}; }
  static constexpr BusyWord since(uint64_t begin, uint64_t total) { return {(begin - total) << 1 | 1}; }
  constexpr bool is_busy() const { return (value & 1) != 0; }
  // Nonsense, where a slice wrote it, stays below `now`.
  constexpr uint64_t total(uint64_t now) const {
    if (!is_busy()) return value >> 1;
    const uint64_t from = value >> 1;
    return now > from ? now - from : 0;
  }
};
static_assert(BusyWord::since(100, 30).total(150) == 80 && BusyWord::idle(80).total(1000) == 80);

// Whether a slice's launches may pass.
enum class GateState : unsigned {
  open = 0,    // Not governed: launches are neither counted nor held.
  closed = 1,  // Wait, and let the arbiter know (ArbiterWord).
  lease = 2,   // Go, counted, with at most `bound` of estimated work in flight per thread.
};

// ControlDevice::lease: what the launch path reads. Zero, the value in a new page, means free.
//   bits 0..1 pass | bit 2 eager | bit 3 unwatched | bits 8..31 bound in us | bits 32..63 number
// The low half changes whenever the gate opens or closes: threads wait for it with a futex.
struct LeaseWord {
  uint64_t value = 0;

  static constexpr uint32_t unlimited_us = 0xff'ffff;
  static constexpr LeaseWord of(GateState gate, uint64_t in_flight_limit_ns, bool notify_on_idle,
                                uint32_t number, bool uncontended = false) {
    const uint64_t us = in_flight_limit_ns / 1000 < unlimited_us ? in_flight_limit_ns / 1000 : unlimited_us;
    return {uint64_t{number} << 32 | us << 8 | (uncontended ? 8u : 0u) | (notify_on_idle ? 4u : 0u) |
            static_cast<uint64_t>(gate)};
  }
  constexpr GateState gate() const { return static_cast<GateState>(value & 3); }
  // Somebody waits for what this slice leaves: let the arbiter know at the end of a synchronising call.
  constexpr bool notify_on_idle() const { return (value & 4) != 0; }
  // Nobody asks when its work ends: what is short and waited for by the program itself needs no marker.
  constexpr bool uncontended() const { return (value & 8) != 0; }
  constexpr uint64_t in_flight_limit_ns() const {
    const uint64_t us = value >> 8 & unlimited_us;
    return us == unlimited_us ? UINT64_MAX : us * 1000;
  }
  constexpr uint32_t number() const { return static_cast<uint32_t>(value >> 32); }
};
static_assert(LeaseWord::of(GateState::lease, 1'000'000, true, 7).in_flight_limit_ns() == 1'000'000);
static_assert(LeaseWord::of(GateState::lease, UINT64_MAX, false, 7).in_flight_limit_ns() == UINT64_MAX);

// Where the arbiter of one device sleeps. A slice cannot write the page, but FUTEX_WAKE needs no more than
// reading: no descriptor of ours has to live in the customer's process. Whoever comes to a gate says so, then
// reads `asleep`; the arbiter sets `asleep`, then looks for who came. Once it has looked, nobody wakes it
// again for the same wait, or as good as nobody.
struct alignas(64) ArbiterWord {
  std::atomic<uint32_t> asleep;  // 1: wake it. 0: it will look by itself, soon.
  std::atomic<uint32_t> polls;   // Counts them, each at its end.
  uint32_t unused[14];

  // Whether a look began after `looks` was read as `then`.
  bool polled_since(uint32_t then) const { return polls.load(std::memory_order_relaxed) - then >= 2; }
};
static_assert(sizeof(ArbiterWord) == 64);

}  // namespace carve::shm
