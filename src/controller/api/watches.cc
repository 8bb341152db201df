#include "controller/api/watches.h"

#include <algorithm>

#include "controller/api/planning.h"

namespace carve::controller {
namespace {

const char* word(ChangeKind kind) {
  return kind == ChangeKind::added ? "added" : kind == ChangeKind::modified ? "modified" : "deleted";
}

http::StreamEvent bookmark(uint64_t version) {
  return {.id = fmt::format("{}", version),
          .data = fmt::format(R"({{"metadata":{{"resourceVersion":"{}"}}}})", version),
          .type = "bookmark"};
}

// The text of one change, formatted when the first watcher needs it.
class ChangeText {
 public:
  ChangeText(const ObjectChange& change, const PresentStatus& present) : change_(change), present_(present) {}

  // Returns the event. For a watcher with a selector, `kind` may differ from the change's own.
  const http::StreamEvent& event(ChangeKind kind, bool with_secrets) {
    http::StreamEvent& out = texts_[with_secrets ? 1 : 0];
    if (out.data.empty()) {
      Object object = present_.shown ? present_.shown(*change_.object) : *change_.object;
      object.version = change_.version;
      out.id = fmt::format("{}", change_.version);
      out.data = document_of(object, !with_secrets);
    }
    out.type = word(kind);
    return out;
  }

 private:
  const ObjectChange& change_;
  const PresentStatus& present_;
  http::StreamEvent texts_[2];
};

// Kinds with values outside of the registry.
constexpr objects::Kind present_kinds[] = {objects::Kind::node, objects::Kind::job,
                                           objects::Kind::ray_cluster};

// Returns the objects that a watcher that continues with these changes may know: all except those added
// since.
std::set<ObjectKey> maybe_known(const std::vector<ObjectRegistry::Pointer>& present,
                                const std::vector<ObjectChange>& changes) {
  std::map<ObjectKey, ChangeKind> first;
  for (const ObjectChange& change : changes) first.emplace(change.object->key, change.kind);
  for (const auto& object : present) first.emplace(object->key, ChangeKind::modified);
  std::set<ObjectKey> out;
  for (const auto& [key, kind] : first)
    if (kind != ChangeKind::added) out.insert(key);
  return out;
}

}  // namespace

struct Watches::Watcher {
  WatchQuery query;
  http::Caller caller;
  std::function<bool()> may_continue = nullptr;
  uint64_t seen = 0;             // The newest version that was sent to the stream.
  unsigned passed = 0;           // Changes since the last event.
  std::set<ObjectKey> selected;  // The objects that the watcher knows, if it has a selector.
  http::Stream* stream = nullptr;

  bool has_place(const ObjectKey& key) const {
    return query.kinds.contains(key.kind) && (query.namespace_.empty() || query.namespace_ == key.namespace_);
  }

  // Returns the change as this watcher sees it; no value if it does not see the change.
  std::optional<ChangeKind> view_of(const ObjectChange& change) {
    const Object& object = *change.object;
    if (!has_place(object.key)) return std::nullopt;
    if (query.selector.empty()) return change.kind;
    const bool is_known = selected.contains(object.key);
    if (change.kind == ChangeKind::deleted || !selects(query.selector, object.labels)) {
      selected.erase(object.key);
      return is_known ? std::optional(ChangeKind::deleted) : std::nullopt;
    }
    selected.insert(object.key);
    return is_known ? ChangeKind::modified : ChangeKind::added;
  }

  // Returns whether the watcher knows the object.
  bool knows(const ObjectKey& key) const {
    return has_place(key) && (query.selector.empty() || selected.contains(key));
  }

  template <class Send>
  void take(const ObjectChange& change, ChangeText& text, Send send) {
    if (change.version <= seen) return;
    seen = change.version;
    if (const auto kind = view_of(change)) {
      passed = 0;
      send(text.event(*kind, may_see_secrets(caller, *change.object)));
    } else if (++passed == bookmark_interval_changes) {
      passed = 0;
      send(bookmark(change.version));
    }
  }
};

Watches::Watches(ObjectRegistry& objects, PresentStatus present)
    : objects_(objects),
      present_(std::move(present)),
      seen_(objects.version()),
      watchers_(std::make_shared<Watchers>()) {}

// Returns the objects that have values outside of the registry.
std::vector<Watches::ObjectWithValues> Watches::with_values() const {
  std::vector<ObjectWithValues> out;
  if (!present_.values) return out;
  for (const objects::Kind kind : present_kinds)
    for (auto& object : objects_.list(kind))
      if (std::string values = present_.values(*object); !values.empty())
        out.push_back({std::move(object), std::move(values)});
  return out;
}

Outcome<http::EventStream> Watches::begin(WatchQuery query, const http::Caller& caller,
                                          std::function<bool()> may_continue) {
  http::EventStream stream;
  auto watcher = std::make_shared<Watcher>(
      Watcher{.query = std::move(query), .caller = caller, .may_continue = std::move(may_continue)});
  // The version is read before the objects, so that no change between the two is missed.
  const uint64_t version = objects_.version();
  std::vector<ObjectRegistry::Pointer> present;
  for (const objects::Kind kind : watcher->query.kinds)
    for (auto& object : objects_.list(kind, watcher->query.namespace_)) present.push_back(std::move(object));
  if (watcher->query.behind) {
    const auto changes = objects_.changes_behind(*watcher->query.behind);
    if (!changes) return tl::unexpected(changes.error());
    watcher->selected = maybe_known(present, *changes);
    watcher->seen = *watcher->query.behind;
    for (const ObjectChange& change : *changes) {
      ChangeText text(change, present_);
      watcher->take(change, text, [&](const http::StreamEvent& e) { stream.first.push_back(e); });
    }
    for (const auto& [object, values] : with_values())
      if (watcher->knows(object->key))
        stream.first.push_back(
            {.id = "",
             .data = document_of(present_.shown(*object), !may_see_secrets(caller, *object)),
             .type = "modified"});
  } else {
    watcher->seen = version;
    for (const auto& object : present) {
      if (!selects(watcher->query.selector, object->labels)) continue;
      watcher->selected.insert(object->key);
      stream.first.push_back({.id = "",
                              .data = document_of(present_.shown ? present_.shown(*object) : *object,
                                                  !may_see_secrets(caller, *object)),
                              .type = "added"});
    }
    stream.first.push_back(bookmark(version));
  }
  stream.subscribe = [this, watcher](http::Stream& to) {
    watcher->stream = &to;
    const uint64_t number = ++next_watcher_;
    watchers_->emplace(number, watcher);
    return std::shared_ptr<void>(watcher.get(), [all = std::weak_ptr(watchers_), number](void*) {
      if (const auto watchers = all.lock()) watchers->erase(number);
    });
  };
  return stream;
}

void Watches::deliver() {
  if (watchers_->empty()) {
    seen_ = objects_.version();
    return;
  }
  const auto changes = objects_.changes_behind(seen_);
  if (!changes) {
    for (const auto& [number, watcher] : *watchers_) watcher->stream->end();
    seen_ = objects_.version();
    return;
  }
  std::vector<Watcher*> served;
  for (const auto& [number, watcher] : *watchers_)
    if (!watcher->may_continue || watcher->may_continue())
      served.push_back(watcher.get());
    else
      watcher->stream->end();
  for (const ObjectChange& change : *changes) {
    ChangeText text(change, present_);
    for (Watcher* watcher : served)
      watcher->take(change, text, [&](const http::StreamEvent& e) { watcher->stream->send(e); });
    seen_ = change.version;
  }
}

void Watches::refresh() {
  if (watchers_->empty() || !present_.values) return;
  std::map<ObjectKey, std::string> values;
  size_t refreshed = 0;
  for (auto& [object, now] : with_values()) {
    const auto sent = sent_values_.find(object->key);
    const bool has_changed = sent == sent_values_.end() || sent->second != now;
    if (has_changed && refreshed == max_refreshed_objects) {
      // Sent later. Without an entry, the object counts as changed.
      if (sent != sent_values_.end()) values.insert(*sent);
      continue;
    }
    values.emplace(object->key, std::move(now));
    if (!has_changed) continue;
    ++refreshed;
    const ObjectChange change{.kind = ChangeKind::modified, .version = object->version, .object = object};
    ChangeText text(change, present_);
    for (const auto& [number, watcher] : *watchers_) {
      if (!watcher->knows(object->key) || (watcher->may_continue && !watcher->may_continue())) continue;
      http::StreamEvent event = text.event(ChangeKind::modified, may_see_secrets(watcher->caller, *object));
      event.id.clear();
      watcher->stream->send(event);
    }
  }
  sent_values_ = std::move(values);
}

}  // namespace carve::controller
