// Decides which events are sent. The same note about an object is sent at most once in 10 minutes, whatever
// other notes come in between, and an object gets at most 25 notes with the same reason in that time. Pure:
// it has no clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "kubernetes/node/rules/slice_events.h"

namespace carve::kubernetes::node {

inline constexpr int64_t same_note_ns = 600'000'000'000;
inline constexpr size_t max_notes_of_reason = 25;
inline constexpr size_t max_notes_kept = 4096;

class SentNotes {
 public:
  // Returns whether the note must be sent now. If so, records it as sent.
  bool is_due(const EventNote& note, int64_t now_ns);
  size_t notes() const { return sent_.size(); }

 private:
  struct Key {
    std::string object_and_reason;
    size_t note_hash = 0;  // Kept instead of the note, which may have 1 KiB.
    auto operator<=>(const Key&) const = default;
  };
  std::map<Key, int64_t> sent_;  // The time when each was sent.
};

}  // namespace carve::kubernetes::node
