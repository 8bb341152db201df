// Why a request fails, outside of the guest library. A failure has a kind, from which each interface derives
// its status (HTTP, exit code), and one message. The message contains the object, the value and how to fix
// it.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/result.h"

namespace carve {

enum class FailureKind {
  invalid_argument,       // The request is wrong; repeating it gives the same result.
  unauthenticated,        // The caller is not identified; use a token or the unix socket.
  permission_denied,      // Another caller may do this.
  called_from_slice,      // Processes inside a slice may not manage slices.
  not_found,              // No such object, or the caller may not see it.
  already_exists,         // The name or the request id is taken.
  failed_precondition,    // The object's state forbids it.
  insufficient_capacity,  // The request is correct but does not fit now; waiting can help.
  resource_exhausted,     // A limit of requests, connections or tokens.
  stale,                  // The object changed after the version that was given.
  gone,                   // A watch cannot resume from so far back.
  unavailable,            // Disk full, device lost, or ledger not writable.
};

// How a kind is shown: the problem type of the API and its HTTP status (docs/glossary.md, section 7).
struct FailureKindText {
  const char* type;
  const char* title;
  unsigned http_status;
};
constexpr FailureKindText shown(FailureKind kind) {
  switch (kind) {
    case FailureKind::invalid_argument: return {"carve:invalid-argument", "invalid argument", 400};
    case FailureKind::unauthenticated: return {"carve:unauthenticated", "unauthenticated", 401};
    case FailureKind::permission_denied: return {"carve:permission-denied", "permission denied", 403};
    case FailureKind::called_from_slice: return {"carve:called-from-slice", "called from a slice", 403};
    case FailureKind::not_found: return {"carve:not-found", "not found", 404};
    case FailureKind::already_exists: return {"carve:already-exists", "already exists", 409};
    case FailureKind::failed_precondition: return {"carve:failed-precondition", "failed precondition", 409};
    case FailureKind::insufficient_capacity:
      return {"carve:insufficient-capacity", "insufficient capacity", 409};
    case FailureKind::resource_exhausted: return {"carve:resource-exhausted", "resource exhausted", 429};
    case FailureKind::stale: return {"carve:stale", "stale", 412};
    case FailureKind::gone: return {"carve:gone", "gone", 410};
    case FailureKind::unavailable: break;
  }
  return {"carve:unavailable", "unavailable", 503};
}

struct Failure {
  FailureKind kind = FailureKind::unavailable;
  std::string message;
};

template <class T>
using Outcome = Result<T, Failure>;

template <class... A>
tl::unexpected<Failure> failure(FailureKind kind, fmt::format_string<A...> form, A&&... values) {
  return tl::unexpected<Failure>(Failure{kind, fmt::format(form, std::forward<A>(values)...)});
}

}  // namespace carve
