// The metadata of all objects that a selection has, followed over an ApiClient: ListWatch decides,
// ObjectWatch sends its requests and keeps its time. A connection that is silent for 90 s is given up, also
// for later requests. WatchedObjects keeps a copy besides.
//
//   ObjectWatch pods(client, {.path = "/api/v1/pods", .label_selector = "carve.dev/sliced=true",
//                             .field_selector = "status.phase!=Succeeded,status.phase!=Failed"},
//                    {.replaced = ..., .changed = ..., .removed = ...}, seed);
#pragma once

#include <memory>

#include "kube/api_client.h"
#include "kube/list_watch.h"

namespace carve::kube {

class ObjectWatch {
 public:
  // Begins at once. The sink is called from the client's callbacks; `seed` decides on random waits.
  ObjectWatch(ApiClient&, Selection, ListWatch::Sink, uint64_t seed);

  // Returns whether a list has been complete.
  bool is_complete() const { return list_watch_.is_complete(); }
  const std::string& resource_version() const { return list_watch_.resource_version(); }
  // Returns why the last request failed; empty: it has not.
  const std::string& problem() const { return problem_; }
  uint64_t lists() const { return list_watch_.lists(); }  // Begun, the first one among them.
  // Returns when the server was heard last: with a page, a line, or a bookmark. 0: never.
  Nanoseconds heard_at() const { return heard_at_; }

 private:
  void step();
  void begin(const ListWatch::Request&);
  void list_answered(const ApiAnswer&);
  void watch_ended(const ApiAnswer&);
  void arm();
  void wake();

  ApiClient& client_;
  const bool is_whole_;  // Of the selection.
  ListWatch list_watch_;
  std::string problem_;
  Nanoseconds heard_at_ = 0;
  std::unique_ptr<ApiCall> call_;   // Null: none is on its way.
  std::unique_ptr<ApiCall> timer_;  // Null: none is set.
  Nanoseconds timer_at_ = 0;
};

class WatchedObjects : public ObjectWatch {
 public:
  // It is called when the copy has the change.
  struct Sink {
    std::function<void()> replaced;
    std::function<void(const ObjectMeta&)> changed, removed;
  };
  WatchedObjects(ApiClient&, Selection, Sink, uint64_t seed);

  const ObjectsByUid& by_uid() const { return by_uid_; }

 private:
  ListWatch::Sink copying(Sink);

  ObjectsByUid by_uid_;
};

}  // namespace carve::kube
