// Limits that a LimitRange of the namespace has written into a pod before the webhook sees it. Kubernetes
// also uses a LimitRange's `max` as its `default`, so a LimitRange that is only meant to bound slices adds a
// slice to every container.
//
// The API server lists these limits in the annotation kubernetes.io/limit-ranger:
//
//   LimitRanger plugin set: carve.dev/memory request for container c; carve.dev/memory limit for container c
//
// If there is a `max`, Kubernetes rejects every container without the limit. A pod with slices therefore
// keeps the defaulted limits, including those that are not read.
#pragma once

#include <string>
#include <vector>

#include "wire/api/json_value.h"

namespace carve::dialects {

// A limit of a container that its owner did not set.
struct DefaultedLimit {
  std::string container, key;

  friend bool operator==(const DefaultedLimit&, const DefaultedLimit&) = default;
};

// Returns the carve.dev limits that the annotation lists.
std::vector<DefaultedLimit> defaulted_limits(const api::Json& pod);

// Removes the limit and the request that Kubernetes added with it.
void remove_limit(api::Json& pod, const DefaultedLimit&);

// Removes the defaulted limits that would change the owner's request: all of them in a pod of another
// dialect, those of ordinary init containers, and a share without memory. Returns a warning for each
// container that has a slice only because of a LimitRange.
std::vector<std::string> remove_defaults(api::Json& pod, const std::vector<DefaultedLimit>&);

// Copies the defaulted limits of `from` into the pod's containers that lack them.
void restore_defaults(api::Json& pod, const api::Json& from, const std::vector<DefaultedLimit>&);

}  // namespace carve::dialects
