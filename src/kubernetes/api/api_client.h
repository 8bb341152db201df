// A program's interface to Kubernetes' API server. CurlApiClient (kubernetes/api/client) sends the requests
// over HTTPS; SimulatedApiClient (kubernetes/api/testing) sends them to a server in memory under virtual
// time. The clock is part of the interface, so a simulation runs the callers' code unchanged.
//
// No call blocks. All functions must be called in one thread, which also runs the callbacks; no function
// calls back before it returns. A write without a response may have been carried out, and a write whose
// connection was closed may be sent twice. Therefore a write must contain a uid, a name or a resourceVersion
// that makes the second attempt fail.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace carve::kubernetes {

using Nanoseconds = int64_t;  // Of CLOCK_MONOTONIC.
inline constexpr Nanoseconds second_ns = 1'000'000'000;

inline constexpr size_t max_answer_bytes = 64 << 20;     // A page may have 500 whole objects.
inline constexpr size_t max_watch_line_bytes = 4 << 20;  // etcd limits an object to 1.5 MB.

// Content types of a request's body.
inline constexpr const char* json_type = "application/json";
inline constexpr const char* merge_patch_type = "application/merge-patch+json";
// Merges some lists, such as a node's conditions, by a key of their items. A merge patch replaces lists.
inline constexpr const char* strategic_merge_patch_type = "application/strategic-merge-patch+json";

// Accept header of a client that requests only metadata (meta.k8s.io/v1 PartialObjectMetadata).
inline constexpr const char* metadata_list =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
inline constexpr const char* metadata_object = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

// Server-side apply: the object's fields that the caller wants, as YAML or JSON.
inline constexpr const char* apply_patch_type = "application/apply-patch+yaml";

struct ApiRequest {
  std::string method = "GET";
  std::string target;  // Path and query: "/api/v1/pods?limit=500".
  std::string body = {};
  std::string content_type = json_type;  // The body's content type.
  std::string accept = json_type;
  Nanoseconds deadline_ns = 30 * second_ns;  // From the call to the end of the response. 0 means no limit.
};

struct ApiAnswer {
  unsigned status = 0;  // 0 if the response is missing or incomplete.
  std::string body;
  unsigned retry_after_seconds = 0;  // From the header; 0 if it is absent.
  std::string problem;               // Why the request failed; empty on success.
  // False if the server did not receive the request or rejected it. True for a 409: the request may have been
  // sent twice, and the first one may have succeeded.
  bool may_have_happened = true;

  bool is_success() const { return status >= 200 && status < 300; }
};

// Returns whether this status proves that a write was not carried out.
constexpr bool refuses_write(unsigned status) {
  return status >= 400 && status < 500 && status != 408 && status != 409;
}

// A call, or a timer. Destroying it cancels it; nothing is called back afterwards.
class ApiCall {
 public:
  virtual ~ApiCall() = default;
  // Reports that this call's connection seems dead, so that later calls use another one. Has no effect on a
  // timer.
  virtual void distrust_connection() {}
};

class ApiClient {
 public:
  using Answered = std::function<void(ApiAnswer)>;
  // `line` receives each line of a 200 response without its line end. Then `ended` is called once: with
  // status 200 if the server ended the response, or 0 if the connection was lost.
  struct Lines {
    std::function<void(std::string_view line)> line;
    Answered ended;
  };

  virtual ~ApiClient() = default;
  [[nodiscard]] virtual std::unique_ptr<ApiCall> send(ApiRequest, Answered) = 0;
  // Watches use a separate connection, because they occupy it for minutes.
  [[nodiscard]] virtual std::unique_ptr<ApiCall> watch(ApiRequest, Lines) = 0;
  [[nodiscard]] virtual std::unique_ptr<ApiCall> after(Nanoseconds, std::function<void()>) = 0;
  virtual Nanoseconds now() const = 0;
};

}  // namespace carve::kubernetes
