// Follows the metadata of all objects of a selection over an ApiClient: ListWatch decides, ObjectWatch sends
// its requests and keeps its timers. After 90 s of silence it abandons the connection, also for later
// requests. WatchedObjects additionally keeps a copy.
//
//   ObjectWatch pods(client, {.path = "/api/v1/pods", .label_selector = "carve.dev/sliced=true",
//                             .field_selector = "status.phase!=Succeeded,status.phase!=Failed"},
//                    {.replaced = ..., .changed = ..., .removed = ...}, seed);
#pragma once

#include <memory>

#include "kubernetes/api/api_client.h"
#include "kubernetes/api/list_watch.h"

namespace carve::kubernetes {

class ObjectWatch {
 public:
  // Starts immediately. The sink is called in the client's callbacks. `seed` determines the random waits.
  ObjectWatch(ApiClient&, Selection, ListWatch::Sink, uint64_t seed);

  // Returns whether a list has been completed.
  bool is_complete() const { return list_watch_.is_complete(); }
  const std::string& resource_version() const { return list_watch_.resource_version(); }
  // Returns why the last request failed. Empty if it did not.
  const std::string& problem() const { return problem_; }
  uint64_t lists() const { return list_watch_.lists(); }  // Number of lists begun, including the first.
  // Returns when the server last sent a page, a line or a bookmark. 0 means never.
  Nanoseconds heard_at() const { return heard_at_; }

 private:
  void step();
  void begin(const ListWatch::Request&);
  void list_answered(const ApiAnswer&);
  void watch_ended(const ApiAnswer&);
  void arm();
  void wake();

  ApiClient& client_;
  const bool is_whole_;  // As in the selection.
  ListWatch list_watch_;
  std::string problem_;
  Nanoseconds heard_at_ = 0;
  std::unique_ptr<ApiCall> call_;   // Null if no request is in progress.
  std::unique_ptr<ApiCall> timer_;  // Null if no timer is set.
  Nanoseconds timer_at_ = 0;
};

class WatchedObjects : public ObjectWatch {
 public:
  // Called after the copy has been updated.
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

}  // namespace carve::kubernetes
