// The metadata of all objects that a selection has, kept up to date over an ApiClient: ListWatch decides,
// this class sends its requests and keeps its time. A connection that is silent for 90 s is given up, also
// for later requests.
//
//   WatchedObjects pods(client, {.path = "/api/v1/pods", .label_selector = "carve.dev/sliced=true",
//                                .field_selector = "status.phase!=Succeeded,status.phase!=Failed"},
//                       {.replaced = ..., .changed = ..., .removed = ...}, seed);
#pragma once

#include <memory>

#include "kube/api_client.h"
#include "kube/list_watch.h"

namespace carve::kube {

class WatchedObjects {
 public:
  // Begins at once. The sink is called from the client's callbacks; `seed` decides on random waits.
  WatchedObjects(ApiClient&, Selection, ListWatch::Sink, uint64_t seed);

  // Returns whether the copy has been complete once.
  bool is_complete() const { return list_watch_.is_complete(); }
  const std::map<std::string, ObjectMeta>& by_uid() const { return list_watch_.objects(); }
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

}  // namespace carve::kube
