// Computes the slices of a pod after its owner's resize request. slice_changes.h decides whether the devices
// have room. Pure.
#pragma once

#include <set>

#include "kubernetes/format/pod_resize.h"
#include "kubernetes/format/pod_slices.h"

namespace carve::kubernetes::coordinator {

// Returns the slices with the new amounts, in the form that they have until the node has carried out the
// change. Fails with a message about the container.
Result<kubernetes::PodSlices, std::string> resized_slices(const kubernetes::PodSlices&,
                                                          const kubernetes::PodResize&);

// Returns whether a change of these slices is waiting for the node.
bool is_changing(const kubernetes::PodSlices&);
// Returns the slices after the change. Containers whose change was rejected keep their earlier amounts.
kubernetes::PodSlices changed_slices(const kubernetes::PodSlices&, const std::set<std::string>& rejected);

// Returns the slices of `a`, with the larger memory of `a` and `b` for each part. Both must have the same
// parts.
kubernetes::PodSlices larger_of(const kubernetes::PodSlices& a, const kubernetes::PodSlices& b);

// Returns "container c: 6 GiB instead of 4 GiB" for each container whose memory differs.
std::string difference(const kubernetes::PodSlices& before, const kubernetes::PodSlices& after);

}  // namespace carve::kubernetes::coordinator
