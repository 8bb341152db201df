#include "kubernetes/node/event_sender.h"

#include "os/log.h"

namespace carve::kubernetes::node {

void EventSender::send(const EventNote& note) {
  if (calls_.size() >= max_events_in_flight || !sent_.is_due(note, client_.now())) return;
  calls_.emplace_back();
  const auto place = std::prev(calls_.end());
  *place = client_.send({.method = "POST",
                         .target = event_target(note),
                         .body = event_document(note, node_, utc_ns_(), ++number_)},
                        [this, place](const kubernetes::ApiAnswer& answer) {
                          if (!answer.is_success())
                            os::log::debug("cannot write an event: {}", answer.problem);
                          calls_.erase(place);
                        });
}

}  // namespace carve::kubernetes::node
