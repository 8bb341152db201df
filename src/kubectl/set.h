// kubectl carve set: the wish for other amounts of a running pod's slice. Pure; set_verb.cc writes it and
// waits for the coordinator's answer.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "wire/kube/pod_slices.h"

namespace carve::kubectl {

struct SliceWish {
  std::string container;  // Empty: the pod's only one with a slice.
  std::string memory;     // As Kubernetes writes quantities: "6Gi"; over all devices of the slice.
};

struct WishedPod {
  kube::PodSlices before, after;
  std::string patch;  // The merge patch that writes the wish; empty: the pod has these amounts.
};
// `pod_json`: the pod as the API server has it. Fails with a sentence.
Result<WishedPod, std::string> wished_pod(std::string_view pod_json, const SliceWish&);

// Returns whether the pod's wish was answered, and then its slices.
Result<std::optional<kube::PodSlices>, std::string> answered_wish(std::string_view pod_json);

// A refusal among a list of events: "CarveRefused" of the action "ChangeSlice".
struct RefusalNote {
  std::string name, note;
};
Result<std::vector<RefusalNote>, std::string> refusals_in(std::string_view events_json);

}  // namespace carve::kubectl
