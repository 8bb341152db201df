// Writes what the books have decided: a pod's node and its slices, as one write of the API server. It finds
// out what became of a write whose answer was lost.
//
// A reservation ends in one of three ways: the pod is seen with its slices; the only try of the write never
// left; or the pod is read, without slices, when no write can be on its way any more. A refusal is of the
// last try alone: an API server that has just started refuses everything (403), and the try before, at its
// predecessor, may have been done. So the pod is read then too.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "cluster/books/books.h"
#include "cluster/extender/messages.h"
#include "kube/api_client.h"

namespace carve::cluster {

// Of a write: the client's deadline. That of the server (`timeout=`) is shorter, because it begins when the
// server has read the request.
inline constexpr kube::Nanoseconds bind_deadline_ns = 2 * kube::second_ns;
inline constexpr unsigned server_bind_seconds = 1;
// Of a reservation without an answer, until its pod is read: the write is over on both sides then.
inline constexpr kube::Nanoseconds find_out_after_ns = 2 * bind_deadline_ns;

// Of a write that was done, until its pod is read if no watch has shown it: the watch broke and the pod may
// be gone, so that no list has it either.
inline constexpr kube::Nanoseconds confirm_after_ns = 10 * kube::second_ns;

class Binder {
 public:
  // An empty sentence is success.
  using Done = std::function<void(const std::string& error)>;

  Binder(kube::ApiClient& client, Books& books) : client_(client), books_(books) {}

  // Writes the slices that are reserved for the pod. `done` is called once and not before this returns,
  // unless the binder ends before.
  void bind(const BindQuestion&, const kube::PodSlices&, Done done);

  // Reservations whose end is being found out.
  size_t open() const;

 private:
  struct Write {
    BindQuestion question;
    Done done;  // Null: it was called.
    bool is_done = false;
    bool may_be_done = false;  // By an earlier try, of which no answer came.
    std::string problem;       // What the last try was refused with.
    std::unique_ptr<kube::ApiCall> call;
  };

  void answered(const std::string& uid, const kube::ApiAnswer&);
  void find_out_later(const std::string& uid);
  void confirm_later(const std::string& uid);
  void read_pod(const std::string& uid);
  void pod_answered(const std::string& uid, const kube::ApiAnswer&);
  void finish(const std::string& uid, const std::string& error);

  kube::ApiClient& client_;
  Books& books_;
  std::map<std::string, Write> writes_;  // By the pod's uid.
};

}  // namespace carve::cluster
