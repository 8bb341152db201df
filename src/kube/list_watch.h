// Follows the metadata of many objects as the API server changes them: a list in pages, then a watch from the
// list's version on. It decides what to request and when; who uses it sends the requests and tells it what
// comes back. No socket, clock or random device: the same answers give the same requests.
//
// Sources: Kubernetes API concepts, "Efficient detection of changes", "410 Gone responses", "Watch
// bookmarks".
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "kube/answers.h"
#include "kube/api_client.h"

namespace carve::kube {

inline constexpr Nanoseconds first_retry_ns =
    800'000'000;  // Doubles up to the longest; the wait is random below it.
inline constexpr Nanoseconds max_retry_ns = 30 * second_ns;
inline constexpr Nanoseconds silence_ns = 90 * second_ns;  // Of a watch, until it is opened again.
inline constexpr unsigned min_watch_seconds = 300, max_watch_seconds = 600;
inline constexpr unsigned page_items = 500;

struct Selection {
  std::string path;            // "/api/v1/pods"
  std::string label_selector;  // "carve.dev/sliced=true"; empty: all.
  std::string field_selector;
  bool is_whole = false;  // The objects are asked for with their status; otherwise their metadata alone.
  std::vector<std::string_view> keys = {};  // Of the labels and annotations that are read; empty: all.
};

class ListWatch {
 public:
  // What its user learns; it keeps no object itself.
  struct Sink {
    // A list is complete: what is not in it is gone.
    std::function<void(ObjectsByUid)> replaced;
    std::function<void(const ObjectMeta&)> changed;  // Added or modified.
    std::function<void(const ObjectMeta&)> removed;
  };
  struct Request {
    std::string target;  // Path and query.
    bool is_watch = false;
  };

  ListWatch(Selection, Sink, uint64_t seed);

  // Returns the request to send now; no value: one is on its way, or it is to wait until wake_at().
  std::optional<Request> next(Nanoseconds now);
  // Returns when next() is to be called again, or when a watch has been silent for too long: then ended().
  Nanoseconds wake_at() const { return wake_at_; }

  // What came back; what comes late is ignored. `retry_after`: of the answer's header, in seconds; 0: it has
  // none.
  void list_answered(std::string_view body, Nanoseconds now);
  void watch_line(std::string_view line, Nanoseconds now);
  // The watch is closed, by the server, by this program after silence, or by a broken connection.
  void ended(Nanoseconds now);
  // The request has another status than 200 or no answer at all (0).
  void failed(unsigned status, unsigned retry_after_seconds, Nanoseconds now);

  // Returns whether a list has been complete.
  bool is_complete() const { return is_complete_; }
  const std::string& resource_version() const { return version_; }
  const std::string& problem() const { return problem_; }  // Why the last request failed; empty: it has not.
  uint64_t lists() const { return lists_; }                // Begun, the first one among them.

 private:
  enum class Next { list, watch };

  std::string target(std::string query) const;
  void list_again();
  void wait(Nanoseconds now, unsigned retry_after_seconds);
  void take(const WatchEvent&);

  const Selection selection_;
  const Sink sink_;
  std::mt19937_64 random_;
  Next next_ = Next::list;
  bool is_busy_ = false;   // A request is on its way.
  bool has_line_ = false;  // The watch has said something.
  Nanoseconds wake_at_ = 0;
  Nanoseconds retry_ns_ = first_retry_ns;
  std::string problem_;
  std::string continue_;    // Of the list that is being read.
  ObjectsByUid collected_;  // Of its pages so far.
  std::string version_;
  bool is_complete_ = false;
  uint64_t lists_ = 0;
};

}  // namespace carve::kube
