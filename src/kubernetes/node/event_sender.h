// Sends the due events about pods and the node (rules/sent_notes.h). An event that the API server does not
// accept is lost, because nothing waits for events.
#pragma once

#include <list>
#include <memory>
#include <string>

#include "kubernetes/api/api_client.h"
#include "kubernetes/node/rules/sent_notes.h"

namespace carve::kubernetes::node {

inline constexpr size_t max_events_in_flight = 64;

class EventSender {
 public:
  // `utc_ns` returns the wall-clock time.
  EventSender(kubernetes::ApiClient& client, std::string node, std::function<int64_t()> utc_ns)
      : client_(client), node_(std::move(node)), utc_ns_(std::move(utc_ns)) {}

  void send(const EventNote&);

 private:
  kubernetes::ApiClient& client_;
  const std::string node_;
  const std::function<int64_t()> utc_ns_;
  uint64_t number_ = 0;
  SentNotes sent_;
  std::list<std::unique_ptr<kubernetes::ApiCall>> calls_;
};

}  // namespace carve::kubernetes::node
