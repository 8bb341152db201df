// Writes a reservation of the cache to the API server: a pod's node and its slices, in one request. If the
// answer is lost, it finds out whether the write was done.
//
// A reservation ends in one of three ways: the pod is seen with its slices; the only attempt was never sent;
// or the pod is read without slices when no write can still be in progress. A refusal applies to the last
// attempt only: an API server that has just started refuses everything (403), but its predecessor may have
// carried out the attempt before. The pod is therefore read after a refusal too.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "kubernetes/api/api_client.h"
#include "kubernetes/coordinator/cache/cache.h"
#include "kubernetes/coordinator/extender/messages.h"

namespace carve::kubernetes::coordinator {

// The client's deadline of a write. The server's (`timeout=`) is shorter, because it begins when the server
// has read the request.
inline constexpr kubernetes::Nanoseconds bind_deadline_ns = 2 * kubernetes::second_ns;
inline constexpr unsigned server_bind_seconds = 1;
// Delay until the pod of an unanswered write is read. The write has ended on both sides by then.
inline constexpr kubernetes::Nanoseconds find_out_after_ns = 2 * bind_deadline_ns;

// Delay until the pod of a successful write is read if the watch has not shown it. The watch may have broken
// and the pod may be gone, so that no list has it either.
inline constexpr kubernetes::Nanoseconds confirm_after_ns = 10 * kubernetes::second_ns;

class Binder {
 public:
  // An empty message is success.
  using Done = std::function<void(const std::string& error)>;

  Binder(kubernetes::ApiClient& client, Cache& cache) : client_(client), cache_(cache) {}

  // Writes the slices that are reserved for the pod. `done` is called once, after this returns, unless the
  // binder is destroyed before.
  void bind(const BindQuestion&, const kubernetes::PodSlices&, Done done);

  // Returns the number of reservations whose result is not known yet.
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
