// The slices of a pod after a resize request of its owner. Whether the devices have room is decided in
// slice_changes.h. Pure.
#pragma once

#include <set>

#include "kubernetes/format/pod_resize.h"
#include "kubernetes/format/pod_slices.h"

namespace carve::kubernetes::coordinator {

// Returns the slices with the new amounts, in the form that they have until the node has carried out the
// change. Fails with a message about the container.
Result<kubernetes::PodSlices, std::string> resized_slices(const kubernetes::PodSlices&,
                                                          const kubernetes::PodResize&);

// Returns whether the node has not carried out a change of these slices yet.
bool is_changing(const kubernetes::PodSlices&);
// Returns the slices after the change. Containers whose change was rejected have their earlier amounts.
kubernetes::PodSlices changed_slices(const kubernetes::PodSlices&, const std::set<std::string>& rejected);

// Returns the slices of `a`, each part with the larger memory of both. Both have the same parts.
kubernetes::PodSlices larger_of(const kubernetes::PodSlices& a, const kubernetes::PodSlices& b);

// Returns "container c: 6 GiB in place of 4 GiB" for each container that differs.
std::string difference(const kubernetes::PodSlices& before, const kubernetes::PodSlices& after);

}  // namespace carve::kubernetes::coordinator
