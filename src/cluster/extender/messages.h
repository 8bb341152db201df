// What kube-scheduler and an extender say to each other (k8s.io/kube-scheduler/extender/v1, v0.36.2). Go
// reads the names of members without case, and writes them as the fields are called.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kube/answers.h"

namespace carve::cluster {

// ExtenderArgs of an extender with nodeCacheCapable: the pod's metadata and the names of nodes. The names are
// parts of the text that was read.
struct NodesQuestion {
  kube::ObjectMeta pod;
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

// ExtenderPreemptionArgs of such an extender: for each node the pods that the scheduler would remove.
struct Victims {
  std::vector<std::string> uids;
  uint64_t violations = 0;  // NumPDBViolations
};
struct PreemptQuestion {
  kube::ObjectMeta pod;
  std::map<std::string, Victims> nodes;
};
Result<PreemptQuestion, std::string> read_preempt_question(std::string_view json);
// ExtenderPreemptionResult: the nodes that are left.
std::string preempt_answer(const std::map<std::string, Victims>&);

// ExtenderFilterResult. `refusals`: for each node, in the question's order; empty: it passes. `preemptible`:
// the positions of refused nodes that the removal of pods would help, ascending.
std::string filter_answer(std::span<const std::string_view> nodes, std::span<const std::string_view> refusals,
                          std::span<const size_t> preemptible);
// Its form for a question that has no answer; the scheduler tries the pod again later.
std::string filter_error(const std::string& sentence);

// HostPriorityList.
std::string prioritize_answer(std::span<const std::string_view> nodes, std::span<const uint8_t> scores);

// ExtenderBindingResult; an empty sentence is success.
std::string bind_answer(const std::string& error);

}  // namespace carve::cluster
