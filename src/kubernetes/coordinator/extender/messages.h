// The messages between kube-scheduler and an extender (k8s.io/kube-scheduler/extender/v1, v0.36.2). Go
// ignores the case of member names when reading, and writes the names of the fields.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kubernetes/api/answers.h"

namespace carve::kubernetes::coordinator {

// ExtenderArgs of an extender with nodeCacheCapable: the pod's metadata and the names of nodes. The names are
// parts of the text that was read.
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

// ExtenderFilterResult. `refusals` has a rule for each node in the request's order, empty if the node passes.
// `preemptible` has the ascending positions of refused nodes where the removal of pods would help.
std::string filter_answer(std::span<const std::string_view> nodes, std::span<const std::string_view> refusals,
                          std::span<const size_t> preemptible);
// ExtenderFilterResult with an error; the scheduler tries the pod again later.
std::string filter_error(const std::string& message);

// HostPriorityList.
std::string prioritize_answer(std::span<const std::string_view> nodes, std::span<const uint8_t> scores);

// ExtenderBindingResult; an empty message means success.
std::string bind_answer(const std::string& error);

}  // namespace carve::kubernetes::coordinator
