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
  std::string name;  // The name of the pod.
  std::string uid;
  std::string container;

  friend bool operator==(const PodContainer&, const PodContainer&) = default;
};

// A pod that may use the slice of a claim.
struct ClaimPod {
  std::string namespace_;
  std::string name;
  std::string uid;

  friend bool operator==(const ClaimPod&, const ClaimPod&) = default;
};

inline constexpr size_t max_claim_pods = 256;  // kubernetes 1.36.2, ResourceClaimReservedForMaxSize.

struct Holder {
  std::optional<PodContainer> pod;
  std::optional<std::string> claim;  // The uid of a resource claim.

  explicit operator bool() const { return pod || claim; }  // False if the slice has no holder.
  friend bool operator==(const Holder&, const Holder&) = default;
};

// Returns whether both are the same container of the same pod, or the same claim. Uids are compared, not
// names. A holder with neither a pod nor a claim equals no holder.
bool is_same(const Holder&, const Holder&);

// Returns "pod a/web-0, container c", "claim UID", or the empty string.
std::string text(const Holder&);

// Checks a holder from outside: it must be a pod or a claim, with valid Kubernetes names.
Outcome<void> check(const Holder&);
Outcome<void> check(const ClaimPod&);

}  // namespace carve
