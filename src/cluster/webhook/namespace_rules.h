// What a namespace says about the pods in it: whether they may share devices, and which quotas would count
// nothing because the webhook replaces the key that they name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "wire/kube/pod_request.h"

namespace carve::cluster {

inline constexpr const char* sharing_label = "carve.dev/sharing";

struct NamespaceRules {
  std::string name;
  std::optional<bool> is_sharing;       // By its label; absent: the cluster's setting.
  std::vector<std::string> quota_keys;  // Of all its ResourceQuotas: "requests.aliyun.com/gpu-mem".
};

// Reads the keys of a ResourceQuotaList's spec.hard. Fails with a sentence.
Result<std::vector<std::string>, std::string> read_quota_keys(std::string_view json);

// Returns why the pod is refused in this namespace; empty: it is not. `shares`: the cluster's setting.
std::string refusal_in(const NamespaceRules&, const kube::PodRequest&, bool shares);

}  // namespace carve::cluster
