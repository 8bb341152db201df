// Kubernetes' API server as a program calls it. CurlApiClient (kube/client) sends the requests over HTTPS;
// SimulatedApiClient (kube/testing) sends them to a server in memory, under virtual time. The time is part of
// the interface, so what is written over it is simulated as it is.
//
// No call waits. All functions are called, and call back, in one thread; none calls back before it returns. A
// write without an answer may have happened, and one whose connection was closed may be sent twice: a write
// names a uid, a name or a resourceVersion that makes a second one fail.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace carve::kube {

using Nanoseconds = int64_t;  // Of CLOCK_MONOTONIC.
inline constexpr Nanoseconds second_ns = 1'000'000'000;

inline constexpr size_t max_answer_bytes = 64
                                           << 20;  // 500 objects of a page, whole, have at most 1.5 MB each.
inline constexpr size_t max_watch_line_bytes = 4 << 20;  // etcd's limit of an object is 1.5 MB.

// Content types of a body.
inline constexpr const char* json_type = "application/json";
inline constexpr const char* merge_patch_type = "application/merge-patch+json";
// Merges some lists, such as a node's conditions, by a key of their objects; a merge patch replaces them.
inline constexpr const char* strategic_merge_patch_type = "application/strategic-merge-patch+json";

// What a client accepts that wants metadata alone (meta.k8s.io/v1 PartialObjectMetadata).
inline constexpr const char* metadata_list =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
inline constexpr const char* metadata_object = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

struct ApiRequest {
  std::string method = "GET";
  std::string target;  // Path and query: "/api/v1/pods?limit=500".
  std::string body = {};
  std::string content_type = json_type;  // Of the body.
  std::string accept = json_type;
  Nanoseconds deadline_ns = 30 * second_ns;  // From the call to the end of the answer; 0: none, for a watch.
};

struct ApiAnswer {
  unsigned status = 0;  // 0: there is no answer, or not all of it.
  std::string body;
  unsigned retry_after_seconds = 0;  // Of the header; 0: it has none.
  std::string problem;               // Why it is no success; empty: it is one.
  // False: the server has not seen the request, or has refused it. True with a 409: the request may have been
  // sent twice, and the first have been done.
  bool may_have_happened = true;

  bool is_success() const { return status >= 200 && status < 300; }
};

// Returns whether a write with this answer cannot have been done.
constexpr bool refuses_write(unsigned status) {
  return status >= 400 && status < 500 && status != 408 && status != 409;
}

// A call, or a timer. Its destructor ends it, and nothing is called back afterwards.
class ApiCall {
 public:
  virtual ~ApiCall() = default;
  // Says that the connection of this call seems dead: later calls use another. Has no effect on a timer.
  virtual void distrust_connection() {}
};

class ApiClient {
 public:
  using Answered = std::function<void(ApiAnswer)>;
  // The lines of an answer 200, without their ends, then once its end: status 200 if the server has closed
  // the answer, and 0 if the connection was lost.
  struct Lines {
    std::function<void(std::string_view line)> line;
    Answered ended;
  };

  virtual ~ApiClient() = default;
  [[nodiscard]] virtual std::unique_ptr<ApiCall> send(ApiRequest, Answered) = 0;
  // Watches have a connection of their own, because they hold it for minutes.
  [[nodiscard]] virtual std::unique_ptr<ApiCall> watch(ApiRequest, Lines) = 0;
  [[nodiscard]] virtual std::unique_ptr<ApiCall> after(Nanoseconds, std::function<void()>) = 0;
  virtual Nanoseconds now() const = 0;
};

}  // namespace carve::kube
