// Follows the metadata of many objects on the API server: a list in pages, then a watch from the list's
// version. ListWatch decides what to request and when; its user sends the requests and passes the responses
// to it. It uses no socket, clock or random device, so the same responses lead to the same requests.
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

#include "kubernetes/api/answers.h"
#include "kubernetes/api/api_client.h"

namespace carve::kubernetes {

// Limit of the wait before the first retry. The limit doubles with each failure, up to max_retry_ns, and each
// wait is a random time below it.
inline constexpr Nanoseconds first_retry_ns = 800'000'000;
inline constexpr Nanoseconds max_retry_ns = 30 * second_ns;
inline constexpr Nanoseconds silence_ns = 90 * second_ns;  // A watch silent for this long is reopened.
inline constexpr unsigned min_watch_seconds = 300, max_watch_seconds = 600;
inline constexpr unsigned page_items = 500;

struct Selection {
  std::string path;            // "/api/v1/pods"
  std::string label_selector;  // "carve.dev/sliced=true". Empty means all.
  std::string field_selector;
  bool is_whole = false;         // Request whole objects with their status instead of only metadata.
  bool keeps_documents = false;  // Keep the text of each object; requires is_whole.
  std::vector<std::string_view> keys = {};  // Labels and annotations to read. Empty means all.
};

class ListWatch {
 public:
  // Receives the objects; ListWatch keeps none itself.
  struct Sink {
    // Called when a list is complete; objects that it does not contain are gone.
    std::function<void(ObjectsByUid)> replaced;
    std::function<void(const ObjectMeta&)> changed;  // Added or modified.
    std::function<void(const ObjectMeta&)> removed;
  };
  struct Request {
    std::string target;  // Path and query.
    bool is_watch = false;
  };

  ListWatch(Selection, Sink, uint64_t seed);

  // Returns the request to send now, or no value while one is in progress or until wake_at().
  std::optional<Request> next(Nanoseconds now);
  // Returns when to call next() again, or, if a watch stays silent, when to call ended().
  Nanoseconds wake_at() const { return wake_at_; }

  // These functions take responses and ignore late ones. `retry_after_seconds` comes from the response's
  // header and is 0 if absent.
  void list_answered(std::string_view body, Nanoseconds now);
  void watch_line(std::string_view line, Nanoseconds now);
  // Call this when the server closed the watch, when this program closed it after silence, or when its
  // connection broke.
  void ended(Nanoseconds now);
  // Call this when the request returned a status other than 200, or no response (status 0).
  void failed(unsigned status, unsigned retry_after_seconds, Nanoseconds now);

  // Returns whether a list has been completed.
  bool is_complete() const { return is_complete_; }
  const std::string& resource_version() const { return version_; }
  const std::string& problem() const { return problem_; }  // Why the last request failed, or empty.
  uint64_t lists() const { return lists_; }                // Number of lists begun, including the first.

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
  bool is_busy_ = false;   // A request is in progress.
  bool has_line_ = false;  // The watch has delivered a line.
  Nanoseconds wake_at_ = 0;
  Nanoseconds retry_ns_ = first_retry_ns;
  std::string problem_;
  std::string continue_;    // Token of the list in progress.
  ObjectsByUid collected_;  // Objects of its pages so far.
  std::string version_;
  bool is_complete_ = false;
  uint64_t lists_ = 0;
};

}  // namespace carve::kubernetes
