// The messages between kube-scheduler and an extender (k8s.io/kube-scheduler/extender/v1, v0.36.2). Go
// ignores the case of member names when it reads, and writes them as the fields are named.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kubernetes/api/answers.h"

namespace carve::kubernetes::coordinator {

// ExtenderArgs of an extender with nodeCacheCapable: the pod's metadata and the names of nodes. The names
// refer to the parsed text.
struct NodesQuestion {
  kubernetes::ObjectMeta pod;
  std::vector<std::string_view> nodes;
};
Result<NodesQuestion, std::string> read_nodes_question(std::string_view json);

struct BindQuestion {
  std::string name_space;
  std::string pod;
  std::string uid;
  std::string node;
};
Result<BindQuestion, std::string> read_bind_question(std::string_view json);

// ExtenderPreemptionArgs of such an extender: the pods that the scheduler would remove from each node.
struct Victims {
  std::vector<std::string> uids;
  uint64_t violations = 0;  // NumPDBViolations
};
struct PreemptQuestion {
  kubernetes::ObjectMeta pod;
  std::map<std::string, Victims> nodes;
};
Result<PreemptQuestion, std::string> read_preempt_question(std::string_view json);
// ExtenderPreemptionResult: the remaining nodes.
std::string preempt_answer(const std::map<std::string, Victims>&);

// ExtenderFilterResult. `refusals` contains a rule for each node in the request's order, or an empty text if
// the node passes. `preemptible` contains the ascending positions of rejected nodes where the removal of pods
// would help.
std::string filter_answer(std::span<const std::string_view> nodes, std::span<const std::string_view> refusals,
                          std::span<const size_t> preemptible);
// ExtenderFilterResult with an error; the scheduler retries the pod later.
std::string filter_error(const std::string& message);

// HostPriorityList.
std::string prioritize_answer(std::span<const std::string_view> nodes, std::span<const uint8_t> scores);

// ExtenderBindingResult. An empty message means success.
std::string bind_answer(const std::string& error);

}  // namespace carve::kubernetes::coordinator
