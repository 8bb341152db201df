#include "kubelet/event_sender.h"

#include "os/log.h"

namespace carve::kubelet {

void EventSender::send(const EventNote& note) {
  const kube::Nanoseconds now = client_.now();
  std::erase_if(sent_, [&](const auto& entry) { return now - entry.second.at >= same_note_ns; });
  Sent& last = sent_[note.about.uid + " " + note.reason];
  if (last.note == note.note) return;
  if (calls_.size() >= max_events_in_flight || sent_.size() > max_notes_kept) {
    sent_.erase(note.about.uid + " " + note.reason);
    return;
  }
  last = {.note = note.note, .at = now};
  calls_.emplace_back();
  const auto place = std::prev(calls_.end());
  *place = client_.send({.method = "POST",
                         .target = event_target(note),
                         .body = event_document(note, node_, utc_ns_(), ++number_)},
                        [this, place](const kube::ApiAnswer& answer) {
                          if (!answer.is_success())
                            os::log::debug("an event was not taken: {}", answer.problem);
                          calls_.erase(place);
                        });
}

}  // namespace carve::kubelet
