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

// One change as text, made when the first watcher needs it.
class ChangeText {
 public:
  explicit ChangeText(const ObjectChange& change) : change_(change) {}

  // Returns the event. `kind` may differ from the change's for a watcher with a selector.
  const http::StreamEvent& event(ChangeKind kind, bool with_secrets) {
    http::StreamEvent& out = texts_[with_secrets ? 1 : 0];
    if (out.data.empty()) {
      Object object = *change_.object;
      object.version = change_.version;
      out.id = fmt::format("{}", change_.version);
      out.data = document_of(object, !with_secrets);
    }
    out.type = word(kind);
    return out;
  }

 private:
  const ObjectChange& change_;
  http::StreamEvent texts_[2];
};

}  // namespace

struct Watches::Watcher {
  WatchQuery query;
  http::Caller caller;
  uint64_t seen = 0;             // The newest version that the stream has.
  unsigned passed = 0;           // Changes since the last event.
  std::set<ObjectKey> selected;  // With a selector: what the watcher may know.
  http::Stream* stream = nullptr;

  bool has_place(const ObjectKey& key) const {
    return query.kinds.contains(key.kind) && (query.namespace_.empty() || query.namespace_ == key.namespace_);
  }

  // Returns what the change is for this watcher; no value: nothing.
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

Watches::Watches(ObjectRegistry& objects)
    : objects_(objects), seen_(objects.version()), watchers_(std::make_shared<Watchers>()) {}

Outcome<http::EventStream> Watches::begin(WatchQuery query, const http::Caller& caller) {
  http::EventStream stream;
  auto watcher = std::make_shared<Watcher>(Watcher{.query = std::move(query), .caller = caller});
  // The version is read before the objects, so no change is missed between the two.
  const uint64_t version = objects_.version();
  std::vector<ObjectRegistry::Pointer> present;
  for (const objects::Kind kind : watcher->query.kinds)
    for (auto& object : objects_.list(kind, watcher->query.namespace_)) present.push_back(std::move(object));
  if (watcher->query.behind) {
    const auto changes = objects_.changes_behind(*watcher->query.behind);
    if (!changes) return tl::unexpected(changes.error());
    // Which objects the watcher knows is not kept: it may know all.
    for (const auto& object : present) watcher->selected.insert(object->key);
    for (const ObjectChange& change : *changes) watcher->selected.insert(change.object->key);
    watcher->seen = *watcher->query.behind;
    for (const ObjectChange& change : *changes) {
      ChangeText text(change);
      watcher->take(change, text, [&](const http::StreamEvent& e) { stream.first.push_back(e); });
    }
  } else {
    watcher->seen = version;
    for (const auto& object : present) {
      if (!selects(watcher->query.selector, object->labels)) continue;
      watcher->selected.insert(object->key);
      stream.first.push_back(
          {.id = "", .data = document_of(*object, !may_see_secrets(caller, *object)), .type = "added"});
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
  for (const ObjectChange& change : *changes) {
    ChangeText text(change);
    for (const auto& [number, watcher] : *watchers_)
      watcher->take(change, text, [&](const http::StreamEvent& e) { watcher->stream->send(e); });
    seen_ = change.version;
  }
}

}  // namespace carve::controller
