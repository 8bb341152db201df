// Slices whose pod's annotation carve.dev/slices has new amounts. The coordinator changes it after a wish of
// the pod's owner, for a running pod; nothing else in it ever changes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kube/answers.h"
#include "wire/api/slice.h"
#include "wire/kube/pod_slices.h"

namespace carve::kubelet {

// Returns what the pod's annotation grants to the slice's holder on this node; no value: nothing, or nothing
// that can be read. `pods`: this node's, by uid.
std::optional<kube::PlacedSlice> placed_for(const api::Slice&, const std::string& node,
                                            const kube::ObjectsByUid& pods);

struct SliceUpdate {
  std::string slice;
  PodContainer holder;
  api::SliceChange change;

  friend bool operator==(const SliceUpdate&, const SliceUpdate&) = default;
};

// Returns "the slice has 6 GiB on each of its devices now" or "... stays ...": what a pod's owner learns of
// an update. `refusal`: why the agent refuses it; empty: it is done.
std::string update_note(const SliceUpdate&, const std::string& refusal);

// `pods`: this node's, by uid. The agent keeps one amount for all parts of a slice, so parts that differ stay
// as they are; so does a slice on other devices than the annotation says.
std::vector<SliceUpdate> find_updates(const std::vector<api::Slice>&, const std::string& node,
                                      const kube::ObjectsByUid& pods);

}  // namespace carve::kubelet
