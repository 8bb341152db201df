// The streams of changes (GET /v1/watch), one per watcher. Each change is one event:
//
//   id: 17                      the change's resource version, after which a watcher continues
//   event: modified             or added, deleted, bookmark
//   data: {"apiVersion":...}    the object; for a deleted object, its last state
//
// A watcher without a version first gets every object as `added`, without ids, and then a bookmark with the
// version of the list. A bookmark is also sent after 1,000 changes that the watcher does not receive, so that
// it can always continue. A change may be sent twice, but the last event of an object always has its last
// state.
//
// The state of a node's agent, and the position and reason of a waiting job, are not part of the stored object
// and have no version. When they change, the object is sent as `modified` without an id, at most
// `max_refreshed_objects` of them a second. A watcher that resumes gets these objects again.
//
// A change is formatted once for the watchers that see the environment and once for the others. The streams
// are used only on the API's loop, which calls deliver() after the registry has changed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "controller/api/label_selector.h"
#include "controller/objects/object_registry.h"
#include "http/caller.h"
#include "http/message.h"

namespace carve::controller {

inline constexpr unsigned bookmark_interval_changes = 1000;
inline constexpr size_t max_refreshed_objects = 100;

// The values that the API shows in addition to the stored status.
struct PresentStatus {
  // Returns the object with these values.
  std::function<Object(const Object&)> shown;
  // Returns the values as a text to compare; empty if the object has none.
  std::function<std::string(const Object&)> values;
};

struct WatchQuery {
  std::set<objects::Kind> kinds;
  std::string namespace_;          // Empty for all.
  LabelSelector selector;          // An object that no longer matches is sent as deleted.
  std::optional<uint64_t> behind;  // The watcher's resource version; absent if it has none.
};

class Watches {
 public:
  // `present` may be empty: then only stored values are sent.
  explicit Watches(ObjectRegistry& objects, PresentStatus present = {});

  // Returns the stream of a new watcher. Fails with gone if the changes after its version are no longer kept.
  // `may_continue` is called before changes are sent; when it returns false because the caller's token is no
  // longer valid, the stream ends. If it is null, the caller keeps its rights.
  Outcome<http::EventStream> begin(WatchQuery, const http::Caller&,
                                   std::function<bool()> may_continue = nullptr);
  // Sends the changes since the last call. If some of them are no longer kept, every stream ends.
  void deliver();
  // Sends the objects whose values outside of the registry have changed since they were sent last.
  void refresh();

 private:
  struct Watcher;
  using Watchers = std::map<uint64_t, std::shared_ptr<Watcher>>;

  struct ObjectWithValues {
    ObjectRegistry::Pointer object;
    std::string values;
  };
  std::vector<ObjectWithValues> with_values() const;

  ObjectRegistry& objects_;
  const PresentStatus present_;
  std::map<ObjectKey, std::string> sent_values_;  // As of the last refresh.
  uint64_t seen_;                                 // The newest version that was delivered.
  uint64_t next_watcher_ = 0;
  std::shared_ptr<Watchers> watchers_;  // Subscriptions hold a weak pointer to it.
};

}  // namespace carve::controller
