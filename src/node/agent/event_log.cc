#include "node/agent/event_log.h"

#include <algorithm>
#include <charconv>

namespace carve::node {
namespace {

std::optional<uint64_t> number_of(std::string_view text) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return number;
}

}  // namespace

EventLog::EventLog(uint64_t generation)
    : generation_(generation), subscribers_(std::make_shared<Subscribers>()) {}

void EventLog::add(Event event) {
  event.number = ++newest_;
  event.caller = caller_;
  ++of_owner_[event.owner];
  events_.push_back(std::move(event));
  if (events_.size() > max_events) make_room();
  const Event added = events_.back();  // A copy, because a subscriber may add an event.
  // A subscriber added during these calls has a key above `last` and is not called.
  const uint64_t last = next_subscriber_;
  for (auto at = subscribers_->begin(); at != subscribers_->end() && at->first < last;) {
    const uint64_t key = at->first;
    const Subscriber call = at->second;
    call(added);
    at = subscribers_->upper_bound(key);
  }
}

void EventLog::make_room() {
  const auto most = std::ranges::max_element(of_owner_, {}, [](const auto& entry) { return entry.second; });
  const auto oldest = std::ranges::find(events_, most->first, &Event::owner);
  newest_removed_ = std::max(newest_removed_, oldest->number);
  events_.erase(oldest);
  if (--most->second == 0) of_owner_.erase(most);
}

std::shared_ptr<void> EventLog::subscribe(Subscriber subscriber) {
  const uint64_t key = next_subscriber_++;
  subscribers_->emplace(key, std::move(subscriber));
  return {nullptr, [all = std::weak_ptr(subscribers_), key](void*) {
            if (const auto subscribers = all.lock()) subscribers->erase(key);
          }};
}

std::string EventLog::id(const Event& event) const { return fmt::format("{}-{}", generation_, event.number); }

Outcome<uint64_t> EventLog::last_seen(std::string_view id) const {
  if (id.empty()) return 0;
  const size_t dash = id.find('-');
  const auto generation = dash == std::string_view::npos ? generation_ : number_of(id.substr(0, dash));
  const auto number = number_of(dash == std::string_view::npos ? id : id.substr(dash + 1));
  if (!generation || !number)
    return failure(FailureKind::invalid_argument,
                   "'{}' is not an event id; use an id from the event stream, or none", id.substr(0, 80));
  const bool this_agent = *generation == generation_;
  if (dash == std::string_view::npos && *number == 0) return 0;
  if (this_agent && *number > newest_)
    return failure(FailureKind::invalid_argument, "there is no event {} yet; the newest is {}", *number,
                   newest_);
  const uint64_t seen = this_agent ? *number : 0;
  if (seen < newest_removed_)
    return failure(FailureKind::gone,
                   "events after {} were dropped, and the oldest that is kept is {}-{}; watch without an id",
                   id, generation_, newest_removed_ + 1);
  return seen;
}

}  // namespace carve::node
