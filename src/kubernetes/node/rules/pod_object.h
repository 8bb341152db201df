// The parts of a pod that this node needs: its metadata, its node, and whether it has ended.
#pragma once

#include <string>
#include <string_view>

#include "kubernetes/api/answers.h"

namespace carve::kubernetes::node {

struct SeenPod {
  kubernetes::ObjectMeta meta;
  std::string node;      // spec.nodeName; empty if the pod is not bound.
  bool is_over = false;  // Its phase is Succeeded or Failed.

  std::string full_name() const { return meta.name_space + "/" + meta.name; }
  friend bool operator==(const SeenPod&, const SeenPod&) = default;
};

// Parses the whole object, as returned by GET. Fails with a message.
Result<SeenPod, std::string> read_pod_object(std::string_view json);

// Returns "container c requests carve.dev/memory" for the first container with a limit of any dialect. Empty
// if there is none.
std::string requested_limit(std::string_view json);

}  // namespace carve::kubernetes::node
