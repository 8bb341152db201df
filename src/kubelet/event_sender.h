// Sends events about pods and the node. The same note about the same object is sent once in 10 minutes; what
// the API server does not take is dropped, because an event is never waited for.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <string>

#include "kube/api_client.h"
#include "kubelet/rules/slice_events.h"

namespace carve::kubelet {

inline constexpr size_t max_events_in_flight = 64;
inline constexpr size_t max_notes_kept = 1024;
inline constexpr kube::Nanoseconds same_note_ns = 600 * kube::second_ns;

class EventSender {
 public:
  // `utc_ns`: the wall clock.
  EventSender(kube::ApiClient& client, std::string node, std::function<int64_t()> utc_ns)
      : client_(client), node_(std::move(node)), utc_ns_(std::move(utc_ns)) {}

  void send(const EventNote&);

 private:
  struct Sent {
    std::string note;
    kube::Nanoseconds at = 0;
  };
  kube::ApiClient& client_;
  const std::string node_;
  const std::function<int64_t()> utc_ns_;
  uint64_t number_ = 0;
  std::map<std::string, Sent> sent_;  // By uid and reason.
  std::list<std::unique_ptr<kube::ApiCall>> calls_;
};

}  // namespace carve::kubelet
