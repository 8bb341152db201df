// The newest 1,000 events of this agent, with numbers and subscribers. Beyond that limit, the oldest event of
// the user with the most events is dropped, so that one user's events do not displace those of others.
// Numbers start at 1 and increase by one. The next agent starts at 1 again, so an event's id has a generation
// before the number: "1764003600123456789-17", where the generation is the start of the agent in UTC ns.
//
// It has neither a clock nor a lock: it is used only on the agent's loop, and the time of an event is an
// argument.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/failure.h"

namespace carve::node {

inline constexpr size_t max_events = 1000;

struct Event {
  int64_t utc_ns;
  std::string slice;  // Empty if the event is about the agent as a whole.
  std::string text;
  std::optional<uint32_t> owner = {};  // The uid that owned the slice when the event happened.
  uint64_t slice_id = 0;               // Id of the slice's usage record; 0 if no slice is known.
  std::string caller = {};             // The user whose request caused it: "root". Set by the log.
  uint64_t number = 0;                 // Set by the log.
};

class EventLog {
 public:
  using Subscriber = std::function<void(const Event&)>;

  explicit EventLog(uint64_t generation);

  // Stores the event under the next number and calls the subscribers.
  void add(Event event);
  // Calls `subscriber` for each later event until the returned value is destroyed. A subscriber may end its
  // own subscription and others.
  [[nodiscard]] std::shared_ptr<void> subscribe(Subscriber subscriber);

  // Sets the caller of the events that are added until the returned value is destroyed.
  [[nodiscard]] std::shared_ptr<void> acting(std::string caller) {
    caller_ = std::move(caller);
    return {nullptr, [this](void*) { caller_.clear(); }};
  }

  // Iterates over the kept events, oldest first.
  auto begin() const { return events_.begin(); }
  auto end() const { return events_.end(); }
  size_t size() const { return events_.size(); }

  std::string id(const Event& event) const;
  // Returns the number of the last event that a caller has seen. "" and "0" mean 0, so that all kept events
  // follow. "17" means that number of this agent. Fails with `gone` if an event after the number is no longer
  // kept, and with `invalid_argument` if the text is not an id of this log. An id of another generation
  // counts as before number 1.
  Outcome<uint64_t> last_seen(std::string_view id) const;

 private:
  using Subscribers = std::map<uint64_t, Subscriber>;

  uint64_t generation_;
  // Removes the oldest event of the owner with the most events. Events of the agent as a whole count as those
  // of one owner.
  void make_room();

  std::string caller_;  // Empty if no request is being handled.
  uint64_t newest_ = 0;
  uint64_t newest_removed_ = 0;  // Highest number of a dropped event.
  std::deque<Event> events_;
  std::map<std::optional<uint32_t>, size_t> of_owner_;  // Number of events by owner.
  uint64_t next_subscriber_ = 0;
  std::shared_ptr<Subscribers>
      subscribers_;  // Subscriptions hold weak pointers, because they may outlive the log.
};

}  // namespace carve::node
