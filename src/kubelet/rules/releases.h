// Which slices have lost their pod. A pod keeps its slices until it is gone from the API or is terminal, also
// while it is terminating; the agent then ends them with their last process.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kube/answers.h"
#include "kube/api_client.h"
#include "wire/api/slice.h"

namespace carve::kubelet {

// A slice whose pod is not in this node's copy of its pods. The copy may be older than the slice, so the API
// server is asked before the slice is released.
struct OrphanCandidate {
  std::string slice;
  PodContainer holder;
};

// `pods`: this node's, by uid; those that are over are not in it.
std::vector<OrphanCandidate> find_orphans(const std::vector<api::Slice>&, const kube::ObjectsByUid& pods);

// Returns whether the answer to a GET of the holder's pod says that this very pod is gone or over. An answer
// that says nothing is no proof.
bool proves_gone(const kube::ApiAnswer&, const PodContainer& holder);

}  // namespace carve::kubelet
