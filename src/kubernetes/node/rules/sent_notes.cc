#include "kubernetes/node/rules/sent_notes.h"

#include <algorithm>
#include <functional>

namespace carve::kubernetes::node {

bool SentNotes::is_due(const EventNote& note, int64_t now_ns) {
  std::erase_if(sent_, [&](const auto& entry) { return now_ns - entry.second >= same_note_ns; });
  const Key key{note.about.uid + " " + note.reason, std::hash<std::string>{}(note.note)};
  if (sent_.contains(key)) return false;
  size_t of_reason = 0;
  for (auto at = sent_.lower_bound({key.object_and_reason, 0});
       at != sent_.end() && at->first.object_and_reason == key.object_and_reason; ++at)
    ++of_reason;
  if (of_reason >= max_notes_of_reason) return false;
  if (sent_.size() >= max_notes_kept)
    sent_.erase(std::ranges::min_element(sent_, {}, [](const auto& entry) { return entry.second; }));
  sent_[key] = now_ns;
  return true;
}

}  // namespace carve::kubernetes::node
