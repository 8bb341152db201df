// The holder of a slice on Kubernetes: one container of a pod, or a resource claim. A slice has at most one
// holder, and a holder has at most one live slice.
#pragma once

#include <optional>
#include <string>

#include "core/failure.h"

namespace carve {

// One container of a pod. The uid distinguishes two pods of the same name.
struct PodContainer {
  std::string namespace_;
  std::string name;  // The pod's.
  std::string uid;
  std::string container;

  friend bool operator==(const PodContainer&, const PodContainer&) = default;
};

struct Holder {
  std::optional<PodContainer> pod;
  std::optional<std::string> claim;  // The uid of a resource claim.

  explicit operator bool() const { return pod || claim; }  // False if the slice has no holder.
  friend bool operator==(const Holder&, const Holder&) = default;
};

// Returns whether both are the same container of the same pod, or the same claim. The uid decides, not the
// names. A holder without a pod and a claim equals none.
bool is_same(const Holder&, const Holder&);

// Returns "pod a/web-0, container c", "claim UID", or the empty string.
std::string text(const Holder&);

// Checks a holder from outside: names as Kubernetes writes them, a pod or a claim.
Outcome<void> check(const Holder&);

}  // namespace carve
