// A pod as this node sees it: its metadata, and where and whether it runs.
#pragma once

#include <string>
#include <string_view>

#include "kube/answers.h"

namespace carve::kubelet {

struct SeenPod {
  kube::ObjectMeta meta;
  std::string node;      // spec.nodeName; empty: it is not bound.
  bool is_over = false;  // Its phase is Succeeded or Failed.

  std::string full_name() const { return meta.name_space + "/" + meta.name; }
  friend bool operator==(const SeenPod&, const SeenPod&) = default;
};

// Reads the whole object, as a GET answers it. Fails with a sentence.
Result<SeenPod, std::string> read_pod_object(std::string_view json);

}  // namespace carve::kubelet
