// Finds slices whose pod is gone. A pod keeps its slices, also while it is terminating, until it is gone from
// the API or its phase is terminal. Then the agent ends each slice with its last process.
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

// Returns the slices without a pod. `pods` are those of this node, by uid, except those that have ended.
std::vector<OrphanCandidate> find_orphans(const std::vector<api::Slice>&,
                                          const kubernetes::ObjectsByUid& pods);

// Returns whether the response to a GET of the holder's pod proves that this pod (by uid) is gone or has ended:
// a 404 with the reason NotFound, or a pod with another uid or in a final phase. False for any other response.
bool proves_gone(const kubernetes::ApiAnswer&, const PodContainer& holder);

}  // namespace carve::kubernetes::node
