// Why something that was asked for does not happen, outside of the guest: a kind, so that each front can
// choose its status (HTTP, exit code), and one sentence that names the thing, the value and the way out.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/result.h"

namespace carve {

enum class FailureKind {
  bad_request,    // The request itself is wrong; asking again gives the same answer.
  not_permitted,  // Somebody else may ask for this.
  not_found,
  conflict,      // A name or an identity is taken.
  no_room,       // Right, but nothing fits now; waiting can help.
  out_of_order,  // The machine is at fault: disk full, device lost, ledger not writable.
};

struct Failure {
  FailureKind kind = FailureKind::out_of_order;
  std::string sentence;
};

template <class T>
using Outcome = Result<T, Failure>;

template <class... A>
tl::unexpected<Failure> failure(FailureKind kind, fmt::format_string<A...> form, A&&... values) {
  return tl::unexpected<Failure>(Failure{kind, fmt::format(form, std::forward<A>(values)...)});
}

}  // namespace carve
