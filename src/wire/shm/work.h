// A slice's work in flight on a device, which the arbiter reads, and the lease word, which the arbiter
// writes. FORMAT.md describes the protocol; this file contains the arithmetic.
//
// Work is measured in time, not in blocks. A thread estimates how long each launch will take and corrects its
// estimates. After every `ControlDevice::fence_interval_ns` of estimated work on a stream, the device itself
// writes the stream's progress (cuStreamWriteValue64). Estimates only place the next fence and the next poll.
// The charge is the time in which work was running.
//
// Each word is written with a plain store by its only writer, so after a kill it has either its old or its
// new value. A slice can write anything here. The arbiter limits what it reads to the time that has passed,
// so false values harm only that slice.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace carve::shm {

inline constexpr unsigned work_threads = 64;  // Per process and device; further threads share the last one.
inline constexpr unsigned work_streams = 64;  // In use at a time; the slot of a completed stream is reused.

// One thread of the slice on one device. Only that thread writes the line. The last line of a process is
// shared by all further threads, with atomic additions.
struct alignas(64) ThreadWork {
  std::atomic<uint64_t> submitted;      //  0  Estimated ns of all submitted work, at least 1 per call.
  std::atomic<uint64_t> unfenced;       //  8  The part of `submitted` that came after the last fence.
  std::atomic<uint64_t> busy;           // 16  BusyWord.
  std::atomic<uint64_t> waiting_since;  // 24  CLOCK_MONOTONIC ns when its wait at a gate began, or 0.
  std::atomic<uint64_t> waited;         // 32  Total ns waited at closed gates.
  std::atomic<uint64_t> longest;        // 40  The longest known single launch (ns).
  std::atomic<uint32_t> device;         // 48  Index in Control::devices plus one; 0 if the line is free.
  std::atomic<uint32_t> flags;          // 52  thread_*
  std::atomic<uint64_t> idle_at;        // 56  CLOCK_MONOTONIC ns at which `busy` last became idle.
};
static_assert(sizeof(ThreadWork) == 64);

inline constexpr uint32_t thread_synchronises = 1;    // Inside a call that waits for the device.
inline constexpr uint32_t thread_back_pressured = 4;  // Waits for its own work before it launches more.

// One stream. Both words count estimated ns of submitted work.
struct StreamWork {
  std::atomic<uint64_t> fenced;     //  0  Value of the last fence. The process writes it, under its own lock.
  std::atomic<uint64_t> completed;  //  8  Written by the device. Equal to `fenced` if no fenced work is left.
  std::atomic<uint32_t> device;     // 16  Index in Control::devices plus one; 0 if the slot is free.
  uint32_t unused[3];               // 20
};
static_assert(sizeof(StreamWork) == 32);

// The writer of StreamWork::completed.
enum class FenceKind : uint32_t {
  none = 0,    // No fence was needed yet.
  memory = 1,  // The device writes the word.
  events = 2,  // The process writes it, with a delay, when one of its calls finds an event complete.
};

// One process. Its first page is registered with the driver, so that the device can write to it.
struct ProcessWork {
  StreamWork stream[work_streams];     //    0
  std::atomic<uint32_t> threads_used;  // 2048  No line from this index on has ever been used.
  std::atomic<uint32_t> streams_used;  // 2052
  std::atomic<uint64_t> copied[3];     // 2056  Bytes copied: to the device, to the host, inside the device.
  std::atomic<uint32_t> fence_kind;    // 2080  FenceKind: how the process detects completion.
  uint32_t reserved;                   // 2084
  uint64_t unused[(4096 - 2088) / 8];
  ThreadWork thread[work_threads];  // 4096
};
static_assert(offsetof(ProcessWork, threads_used) == 2048 && offsetof(ProcessWork, thread) == 4096);
static_assert(sizeof(ProcessWork) == 8192);

// How long a thread has had work on the device, in one word so that one store changes it. While idle, the
// word is the total, shifted. While busy, it is `begin - total`, shifted, with the low bit set, so the total
// at any time `now` is `now - (begin - total)`. 63 bits of ns are 292 years.
struct BusyWord {
  uint64_t value = 0;

  static constexpr BusyWord idle(uint64_t total) { return {total << 1}; }
  static constexpr BusyWord since(uint64_t begin, uint64_t total) { return {(begin - total) << 1 | 1}; }
  constexpr bool is_busy() const { return (value & 1) != 0; }
  // Returns the total, limited to `now` in case a slice wrote a false value.
  constexpr uint64_t total(uint64_t now) const {
    if (!is_busy()) return value >> 1;
    const uint64_t from = value >> 1;
    return now > from ? now - from : 0;
  }
};
static_assert(BusyWord::since(100, 30).total(150) == 80 && BusyWord::idle(80).total(1000) == 80);

// Whether a slice's launches may proceed.
enum class GateState : unsigned {
  open = 0,    // Not arbitrated: launches are neither counted nor delayed.
  closed = 1,  // Wait, and notify the arbiter (ArbiterWord).
  lease = 2,   // Proceed, counted, with at most the in-flight limit of estimated work per thread.
};

// ControlDevice::lease: what the launch path reads. Zero, the value in a new page, means open.
//   bits 0..1 gate | 2 notify on idle | 3 uncontended | 4 draining | 5 imminent
//   bits 8..31 in-flight limit in us | 32..63 number
// The low half changes whenever the gate opens, closes or is about to open, because threads wait on it with a
// futex.
struct LeaseWord {
  uint64_t value = 0;

  static constexpr uint32_t unlimited_us = 0xff'ffff;
  static constexpr LeaseWord of(GateState gate, uint64_t in_flight_limit_ns, bool notify_on_idle,
                                uint32_t number, bool uncontended = false, bool draining = false,
                                bool imminent = false) {
    const uint64_t us = in_flight_limit_ns / 1000 < unlimited_us ? in_flight_limit_ns / 1000 : unlimited_us;
    return {uint64_t{number} << 32 | us << 8 | (imminent ? 32u : 0u) | (draining ? 16u : 0u) |
            (uncontended ? 8u : 0u) | (notify_on_idle ? 4u : 0u) | static_cast<uint64_t>(gate)};
  }
  constexpr GateState gate() const { return static_cast<GateState>(value & 3); }
  // Another client waits for this slice's work to end, so wake the arbiter at the end of a synchronising
  // call.
  constexpr bool notify_on_idle() const { return (value & 4) != 0; }
  // The completion time of the work is not needed, so short work that the program itself waits for gets no
  // fence.
  constexpr bool uncontended() const { return (value & 8) != 0; }
  // The gate is closed and the arbiter waits for the end of this slice's work, so a thread at the gate
  // inserts a fence after its last launches. At any other time, the device may already be working for another
  // slice.
  constexpr bool draining() const { return (value & 16) != 0; }
  // The gate is closed and about to open, so a thread at the gate spins for a while instead of sleeping.
  constexpr bool imminent() const { return (value & 32) != 0; }
  constexpr uint64_t in_flight_limit_ns() const {
    const uint64_t us = value >> 8 & unlimited_us;
    return us == unlimited_us ? UINT64_MAX : us * 1000;
  }
  constexpr uint32_t number() const { return static_cast<uint32_t>(value >> 32); }
};
static_assert(LeaseWord::of(GateState::lease, 1'000'000, true, 7).in_flight_limit_ns() == 1'000'000);
static_assert(LeaseWord::of(GateState::lease, UINT64_MAX, false, 7).in_flight_limit_ns() == UINT64_MAX);

// The word on which the arbiter of one device sleeps. A slice cannot write to the page, but FUTEX_WAKE only
// needs to read it. So the user's process need not keep a descriptor of the agent. A thread at a gate first
// stores that it waits, then reads `asleep`. The arbiter sets `asleep`, then reads which threads wait. After
// a poll, further wakes for the same wait are suppressed (best effort).
struct alignas(64) ArbiterWord {
  std::atomic<uint32_t> asleep;  // 1: must be woken. 0: will poll soon anyway.
  std::atomic<uint32_t> polls;   // Number of polls, incremented at the end of each.
  uint32_t unused[14];

  // Returns whether a poll began after `polls` was read as `then`.
  bool polled_since(uint32_t then) const { return polls.load(std::memory_order_relaxed) - then >= 2; }
};
static_assert(sizeof(ArbiterWord) == 64);

}  // namespace carve::shm
