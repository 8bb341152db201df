// The streams of changes (GET /v1/watch), one for each watcher. A change is one event:
//
//   id: 17                      the change's resource version, behind which a watcher continues
//   event: modified             or added, deleted, bookmark
//   data: {"apiVersion":...}    the object; of a deleted object, as it was last
//
// A watcher without a version first gets every object as `added`, without ids, and then a bookmark: its
// version is that of the list. A bookmark also comes when 1,000 changes have passed that the watcher does not
// get, so that it can always continue. A change may come twice, and the last event of an object is always
// its last state.
//
// A change is written as text once for the watchers who see the environment and once for the others. The
// loop of the API alone uses the streams; deliver() is called there after the registry has changed.
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

struct WatchQuery {
  std::set<objects::Kind> kinds;
  std::string namespace_;          // Empty: all.
  LabelSelector selector;          // An object that ceases to match is told as deleted.
  std::optional<uint64_t> behind;  // The resource version that the watcher has; absent: none.
};

class Watches {
 public:
  explicit Watches(ObjectRegistry& objects);

  // Returns a new watcher's stream. Fails with gone if the changes behind its version are not kept.
  // `may_continue` is asked before changes are sent: the stream ends when the caller's token is not valid any
  // more. Without it, the caller keeps its rights.
  Outcome<http::EventStream> begin(WatchQuery, const http::Caller&,
                                   std::function<bool()> may_continue = nullptr);
  // Sends the changes since the last call. If they are not kept any more, every stream ends.
  void deliver();

 private:
  struct Watcher;
  using Watchers = std::map<uint64_t, std::shared_ptr<Watcher>>;

  ObjectRegistry& objects_;
  uint64_t seen_;  // The newest version that was delivered.
  uint64_t next_watcher_ = 0;
  std::shared_ptr<Watchers> watchers_;  // Subscriptions know it weakly.
};

}  // namespace carve::controller
