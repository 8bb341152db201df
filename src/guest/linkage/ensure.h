// Assertions of the guest library. The library runs in the user's process, so it never ends that process:
// ensure() counts a condition that does not hold and returns it, and the caller degrades. For example, an
// allocation is refused, an attach fails at cuInit, or a launch proceeds uncounted. A memory quota is never
// lifted.
//
// The count is a word of the slice's report (wire/shm/layout.h), which the agent reports as an event. Before
// the process is attached, failures are counted in a word of this library. ensure() does not allocate, lock
// or use libstdc++.
#pragma once

#include <atomic>
#include <cstdint>

namespace carve::guest {

inline constinit std::atomic<uint32_t> failures_before_attach{0};
inline constinit std::atomic<std::atomic<uint32_t>*> ensure_failures{&failures_before_attach};

[[gnu::cold, gnu::noinline]] inline bool count_failure() {
  ensure_failures.load(std::memory_order_acquire)->fetch_add(1, std::memory_order_relaxed);
  return false;
}

// Returns the condition, and counts it if it does not hold.
[[nodiscard]] inline bool ensure(bool condition) {
  return __builtin_expect(condition, true) ? true : count_failure();
}

// Counts in `word` from now on, starting with the failures so far. `word` lives as long as the process.
inline void publish_failures(std::atomic<uint32_t>& word) {
  ensure_failures.store(&word, std::memory_order_release);
  if (const uint32_t before = failures_before_attach.exchange(0, std::memory_order_relaxed); before != 0)
    word.fetch_add(before, std::memory_order_relaxed);
}

}  // namespace carve::guest
