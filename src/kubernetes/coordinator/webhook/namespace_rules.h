// A namespace's rules for its pods: whether they may share devices, which account pays for them, and which
// quotas would have no effect, either because the webhook replaces the resource that they count or because
// the pod requests no amount of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kubernetes/format/pod_request.h"

namespace carve::kubernetes::coordinator {

inline constexpr const char* sharing_label = "carve.dev/sharing";

struct NamespaceRules {
  std::string name;
  std::optional<bool> is_sharing;       // From its label; if absent, the cluster's setting applies.
  std::string account;                  // From its label; if empty, each pod chooses its account.
  std::vector<std::string> quota_keys;  // From all its ResourceQuotas: "requests.aliyun.com/gpu-mem".
};

// Parses the keys of spec.hard in a ResourceQuotaList. Fails with a message.
Result<std::vector<std::string>, std::string> read_quota_keys(std::string_view json);

// Returns why a pod with this label carve.dev/account is rejected. Empty if it is allowed or has no label.
std::string account_refusal_in(const NamespaceRules&, const std::string& pod_account);

// Returns why the pod is rejected in this namespace. Empty if it is allowed. `shares` is the cluster's
// setting.
std::string refusal_in(const NamespaceRules&, const kubernetes::PodRequest&, bool shares);

}  // namespace carve::kubernetes::coordinator
