// kubectl carve set: the resize request that changes the amounts of a running pod's slice. Pure; set_verb.cc
// writes it and waits until the coordinator has rejected it, or until the node has carried it out or rejected
// it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kubernetes/format/pod_slices.h"

namespace carve::kubernetes::cli {

struct SliceResize {
  std::string container;  // If empty, the only container with a slice.
  std::string memory;     // As Kubernetes writes quantities: "6Gi"; over all devices of the slice.
};

struct ResizedPod {
  kubernetes::PodSlices before, after;
  // The merge patch that writes the resize request. Empty if the pod already has these amounts.
  std::string patch;
};
// `pod_json` is the pod as returned by the API server. Fails with a message.
Result<ResizedPod, std::string> resized_pod(std::string_view pod_json, const SliceResize&);

// The state of the pod's resize request.
struct ResizeProgress {
  enum class State : uint8_t { waits_for_coordinator, waits_for_node, ended };
  State state = State::waits_for_coordinator;
  kubernetes::PodSlices slices;  // Empty while the resize request waits for the coordinator.
};
Result<ResizeProgress, std::string> resize_progress(std::string_view pod_json);

// A rejection in a list of events: reason "CarveRefused", action "ChangeSlice".
struct RefusalNote {
  std::string name, note;
};
Result<std::vector<RefusalNote>, std::string> refusals_in(std::string_view events_json);

}  // namespace carve::kubernetes::cli
