// Writes a reservation of the cache to the API server: a pod's node and its slices, in one request. If the
// response is lost, it determines whether the write was carried out.
//
// A reservation ends in one of three ways: the pod is seen with its slices; the only attempt was never sent;
// or the pod is read without slices when no write can still be in progress. A rejection applies only to the
// last attempt: an API server that has just started rejects everything (403), but its predecessor may have
// carried out the previous attempt. Therefore the pod is also read after a rejection.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "kubernetes/api/api_client.h"
#include "kubernetes/coordinator/cache/cache.h"
#include "kubernetes/coordinator/extender/messages.h"

namespace carve::kubernetes::coordinator {

// The client's deadline for a write. The server's (`timeout=`) is shorter, because it starts when the server
// has read the request.
inline constexpr kubernetes::Nanoseconds bind_deadline_ns = 2 * kubernetes::second_ns;
inline constexpr unsigned server_bind_seconds = 1;
// Delay before the pod of a write without a response is read. By then the write has ended on both sides.
inline constexpr kubernetes::Nanoseconds find_out_after_ns = 2 * bind_deadline_ns;

// Delay before the pod of a successful write is read if the watch has not shown the pod. The watch may have
// broken and the pod may be gone, in which case no list contains it either.
inline constexpr kubernetes::Nanoseconds confirm_after_ns = 10 * kubernetes::second_ns;

class Binder {
 public:
  // An empty message means success.
  using Done = std::function<void(const std::string& error)>;

  Binder(kubernetes::ApiClient& client, Cache& cache) : client_(client), cache_(cache) {}

  // Writes the slices that are reserved for the pod. `done` is called once, after this function has returned,
  // unless the binder is destroyed first.
  void bind(const BindQuestion&, const kubernetes::PodSlices&, Done done);

  // Returns the number of reservations whose outcome is unknown.
  size_t open() const;

 private:
  struct Write {
    BindQuestion question;
    Done done;  // Null after it was called.
    bool is_done = false;
    bool may_be_done = false;  // An earlier attempt got no response.
    std::string problem;       // Why the last attempt failed.
    std::unique_ptr<kubernetes::ApiCall> call;
  };

  void answered(const std::string& uid, const kubernetes::ApiAnswer&);
  void find_out_later(const std::string& uid);
  void confirm_later(const std::string& uid);
  void read_pod(const std::string& uid);
  void pod_answered(const std::string& uid, const kubernetes::ApiAnswer&);
  void finish(const std::string& uid, const std::string& error);

  kubernetes::ApiClient& client_;
  Cache& cache_;
  std::map<std::string, Write> writes_;  // By the pod's uid.
};

}  // namespace carve::kubernetes::coordinator
