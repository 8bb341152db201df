// Finds slices that have lost their pod. A pod keeps its slices until it is gone from the API or is terminal,
// also while it is terminating; the agent then ends them with their last process.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kubernetes/api/answers.h"
#include "kubernetes/api/api_client.h"
#include "wire/api/slice.h"

namespace carve::kubernetes::node {

// A slice whose pod is missing from the cache of this node's pods. The cache may be older than the slice, so
// the pod is looked up on the API server before the slice is released.
struct OrphanCandidate {
  std::string slice;
  PodContainer holder;
};

// `pods` are this node's, by uid, without those that have ended.
std::vector<OrphanCandidate> find_orphans(const std::vector<api::Slice>&,
                                          const kubernetes::ObjectsByUid& pods);

// Returns whether the response to a GET of the holder's pod proves that this very pod is gone or has ended. A
// response without that information is no proof.
bool proves_gone(const kubernetes::ApiAnswer&, const PodContainer& holder);

}  // namespace carve::kubernetes::node
