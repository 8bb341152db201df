// Events CarveInsufficientCapacity of waiting pods (events.k8s.io/v1). The scheduler retries a waiting pod
// after each change of the cluster. The pod gets at most one event per minute, and only if the message has
// changed. WaitingEvents decides and has no clock; EventWriter writes the events.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kubernetes/api/answers.h"
#include "kubernetes/api/api_client.h"

namespace carve::kubernetes::coordinator {

inline constexpr kubernetes::Nanoseconds event_interval_ns = 60 * kubernetes::second_ns;
inline constexpr size_t max_note_bytes = 1023;  // Event.note must be shorter than 1 kB (events.k8s.io/v1).

class WaitingEvents {
 public:
  // Returns whether the pod may get an event now.
  bool may_be_due(const std::string& uid, kubernetes::Nanoseconds now) const;
  // Returns whether the pod gets an event with this message now. If so, records it as written.
  bool is_due(const std::string& uid, const std::string& message, kubernetes::Nanoseconds now);
  void forget(const std::string& uid) { last_.erase(uid); }
  size_t pods() const { return last_.size(); }

 private:
  static constexpr size_t max_pods = 100'000;  // When exceeded, the oldest pod is forgotten.
  struct Last {
    std::string message;
    kubernetes::Nanoseconds at;
  };
  std::map<std::string, Last> last_;  // By the pod's uid.
};

// The fields of an event except its note.
struct EventForm {
  std::string kind = "Pod";  // Kind of the object; events of objects without a namespace are in `default`.
  bool is_warning = true;
  std::string reason;    // "CarveInsufficientCapacity"
  std::string action;    // "Scheduling"
  std::string instance;  // The replica that writes the event.
  int64_t at_utc_ns = 0;
};
// Returns the Event object for `about`. The note is cut to its limit.
std::string event_body(const kubernetes::ObjectMeta& about, const std::string& note, const EventForm&);

class EventWriter {
 public:
  EventWriter(kubernetes::ApiClient& client, std::string instance, std::function<int64_t()> utc_ns)
      : client_(client), instance_(std::move(instance)), utc_ns_(std::move(utc_ns)) {}

  // Writes the event if it is due. If the write fails, the event is lost; the next message gets its own
  // event. `why` is called before this function returns, and only if an event may be due.
  void waits(const kubernetes::ObjectMeta& pod, const std::function<std::string()>& why);
  void forget(const std::string& uid) { rule_.forget(uid); }

  // Writes an event regardless of the limit above. `ended` is called when the event is written or lost.
  struct Note {
    std::string kind = "Pod";
    bool is_warning = true;
    std::string reason, action, message;
  };
  void write(const kubernetes::ObjectMeta& about, const Note&, std::function<void()> ended = {});

 private:
  static constexpr size_t max_writes = 64;  // Writes in progress; further events are dropped.

  kubernetes::ApiClient& client_;
  const std::string instance_;
  const std::function<int64_t()> utc_ns_;
  WaitingEvents rule_;
  uint64_t next_ = 0;
  std::map<uint64_t, std::unique_ptr<kubernetes::ApiCall>> writes_;
};

}  // namespace carve::kubernetes::coordinator
