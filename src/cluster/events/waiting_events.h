// Events CarveInsufficientCapacity of pods that wait (events.k8s.io/v1). The scheduler asks again for a
// waiting pod at each change of the cluster; the pod gets one event a minute, and only if its sentence has
// changed. WaitingEvents decides and has no clock; EventWriter sends.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kube/answers.h"
#include "kube/api_client.h"

namespace carve::cluster {

inline constexpr kube::Nanoseconds event_interval_ns = 60 * kube::second_ns;
inline constexpr size_t max_note_bytes = 1023;  // Event.note has less than 1 kB (events.k8s.io/v1).

class WaitingEvents {
 public:
  // Returns whether the pod may get an event now.
  bool may_be_due(const std::string& uid, kube::Nanoseconds now) const;
  // Returns whether the pod gets an event of this sentence now, and takes it as written.
  bool is_due(const std::string& uid, const std::string& sentence, kube::Nanoseconds now);
  void forget(const std::string& uid) { last_.erase(uid); }
  size_t pods() const { return last_.size(); }

 private:
  static constexpr size_t max_pods = 100'000;  // Beyond it the oldest is forgotten.
  struct Last {
    std::string sentence;
    kube::Nanoseconds at;
  };
  std::map<std::string, Last> last_;  // By the pod's uid.
};

// What an event says besides its sentence.
struct EventForm {
  std::string kind = "Pod";  // Of the object; without a namespace, its events are in `default`.
  bool is_warning = true;
  std::string reason;    // "CarveInsufficientCapacity"
  std::string action;    // "Scheduling"
  std::string instance;  // The replica that writes it.
  int64_t at_utc_ns = 0;
};
// Returns the object Event about the object; the note is cut to its limit.
std::string event_body(const kube::ObjectMeta& about, const std::string& note, const EventForm&);

class EventWriter {
 public:
  EventWriter(kube::ApiClient& client, std::string instance, std::function<int64_t()> utc_ns)
      : client_(client), instance_(std::move(instance)), utc_ns_(std::move(utc_ns)) {}

  // Writes the event if it is due. An event whose write fails is lost: the next sentence has its own.
  // `why` is asked during the call, and only if an event may be due.
  void waits(const kube::ObjectMeta& pod, const std::function<std::string()>& why);
  void forget(const std::string& uid) { rule_.forget(uid); }

  // Writes an event at once. `ended`: called when it is written or lost.
  struct Note {
    std::string kind = "Pod";
    bool is_warning = true;
    std::string reason, action, sentence;
  };
  void write(const kube::ObjectMeta& about, const Note&, std::function<void()> ended = {});

 private:
  static constexpr size_t max_writes = 64;  // On their way; further events are left out.

  kube::ApiClient& client_;
  const std::string instance_;
  const std::function<int64_t()> utc_ns_;
  WaitingEvents rule_;
  uint64_t next_ = 0;
  std::map<uint64_t, std::unique_ptr<kube::ApiCall>> writes_;
};

}  // namespace carve::cluster
