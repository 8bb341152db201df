// What a pod's slices become after a wish of its owner, before it is known whether the devices have room.
// Pure.
#pragma once

#include "wire/kube/pod_slices.h"
#include "wire/kube/pod_wish.h"

namespace carve::cluster {

// Returns the slices with the new amounts. Fails with a sentence about the container.
Result<kube::PodSlices, std::string> wished_slices(const kube::PodSlices&, const kube::PodWish&);

// Returns the slices of `a`, each part with the larger memory of both. Both have the same parts.
kube::PodSlices larger_of(const kube::PodSlices& a, const kube::PodSlices& b);

// Returns "container c: 6 GiB in place of 4 GiB" for each container that differs.
std::string difference(const kube::PodSlices& before, const kube::PodSlices& after);

}  // namespace carve::cluster
