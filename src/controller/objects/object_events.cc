#include "controller/objects/object_events.h"

#include <algorithm>

#include "core/invariant.h"

namespace carve::controller {
namespace {

constexpr size_t max_message_bytes = 1024;

void sort_by_time(std::vector<KeptEvent>& events) {
  std::ranges::stable_sort(events, {}, &KeptEvent::last_ns);
}

}  // namespace

ObjectEvents::ObjectEvents(const ObjectRegistry& objects, EventJournal& journal,
                           const std::vector<KeptEvent>& kept)
    : objects_(objects), journal_(journal), seen_version_(objects.version()) {
  for (const objects::KindText& kind : objects::kinds)
    for (const auto& object : objects.list(kind.value)) known_[object->key] = object;
  for (KeptEvent event : kept) {
    const auto present = known_.find(event.key.object);
    if (event.key.uid.empty() && present != known_.end() && event.first_ns >= present->second->created_ns) {
      removed_.insert(event.key);
      event.key.uid = present->second->uid;
      changed_.insert(event.key);
    }
    events_.insert_or_assign(event.key, event);
  }
}

void ObjectEvents::take(const ObjectChange& change, int64_t now_ns) {
  const ObjectKey& key = change.object->key;
  const auto before = known_.find(key);
  std::vector<ChangeEvent> found;
  if (change.kind == ChangeKind::deleted)
    found = events_of_deleted(*change.object);
  else if (change.kind == ChangeKind::added || before == known_.end())
    found = events_of_added(*change.object);
  else
    found = events_between(*before->second, *change.object);
  for (const ChangeEvent& event : found)
    add({.object = key, .uid = change.object->uid, .reason = event.reason}, event.message, change.caller,
        now_ns);
  if (change.kind == ChangeKind::deleted)
    known_.erase(key);
  else
    known_[key] = change.object;
}

void ObjectEvents::take_changes(int64_t now_ns) {
  const auto changes = objects_.changes_behind(seen_version_);
  if (changes) {
    for (const ObjectChange& change : *changes) take(change, now_ns);
    if (!changes->empty()) seen_version_ = changes->back().version;
    return;
  }
  // More has changed than the registry keeps, so the changes in between are unknown.
  seen_version_ = objects_.version();
  known_.clear();
  for (const objects::KindText& kind : objects::kinds)
    for (const auto& object : objects_.list(kind.value)) known_[object->key] = object;
}

void ObjectEvents::add(const ObjectKey& object, const ChangeEvent& added, int64_t now_ns) {
  const auto present = objects_.find(object);
  add({.object = object, .uid = present ? present->uid : "", .reason = added.reason}, added.message,
      ChangesBy::caller(), now_ns);
}

void ObjectEvents::add(const EventKey& key, const std::string& message, const std::string& caller,
                       int64_t now_ns) {
  KeptEvent& event = events_[key];
  if (event.count == 0) event = {.key = key, .message = "", .first_ns = now_ns};
  event.message = message.substr(0, max_message_bytes);
  event.caller = caller;
  ++event.count;
  event.last_ns = std::max(now_ns, event.first_ns);
  changed_.insert(key);
  removed_.erase(key);
  if (events_.size() > max_kept_events) forget_oldest();
  invariant(events_.size() <= max_kept_events);
}

void ObjectEvents::forget_oldest() {
  const auto oldest =
      std::ranges::min_element(events_, {}, [](const auto& entry) { return entry.second.last_ns; });
  removed_.insert(oldest->first);
  changed_.erase(oldest->first);
  events_.erase(oldest);
}

Outcome<void> ObjectEvents::write() {
  if (changed_.empty() && removed_.empty()) return {};
  std::vector<KeptEvent> changed;
  for (const EventKey& key : changed_) changed.push_back(events_.at(key));
  if (auto written = journal_.write(changed, std::vector<EventKey>(removed_.begin(), removed_.end()));
      !written)
    return written;
  changed_.clear();
  removed_.clear();
  return {};
}

std::vector<KeptEvent> ObjectEvents::of(const ObjectKey& object) const {
  std::vector<KeptEvent> out = of_all_lives(object);
  const auto present = objects_.find(object);
  if (!present && out.empty()) return out;
  const std::string uid = present ? present->uid : out.back().key.uid;
  std::erase_if(out, [&](const KeptEvent& event) { return event.key.uid != uid; });
  return out;
}

std::vector<KeptEvent> ObjectEvents::of_all_lives(const ObjectKey& object) const {
  std::vector<KeptEvent> out;
  for (auto it = events_.lower_bound({.object = object, .uid = "", .reason = objects::EventReason::created});
       it != events_.end() && it->first.object == object; ++it)
    out.push_back(it->second);
  sort_by_time(out);
  return out;
}

std::vector<KeptEvent> ObjectEvents::newest(const std::string& name_space, size_t limit) const {
  std::vector<KeptEvent> out;
  for (const auto& [key, event] : events_)
    if (name_space.empty() || key.object.namespace_ == name_space) out.push_back(event);
  sort_by_time(out);
  if (out.size() > limit) out.erase(out.begin(), out.end() - static_cast<ptrdiff_t>(limit));
  return out;
}

}  // namespace carve::controller
