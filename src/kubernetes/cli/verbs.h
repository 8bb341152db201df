// The verbs of kubectl-carve that call the cluster: they take the options, call kubectl and print. Each
// returns the exit status.
#pragma once

#include <string>
#include <vector>

#include "kubernetes/cli/changes.h"
#include "kubernetes/cli/kubectl_command.h"
#include "kubernetes/cli/table.h"

namespace carve::kubernetes::cli {

inline constexpr int failed_status = 1, usage_status = 2;

struct VerbOptions {
  KubectlOptions kubectl;
  Form form = Form::table;
  Headings headings = Headings::shown;
  std::string path_template;       // For -o jsonpath.
  std::string name_space;          // Pods' namespace. Empty means all, or the context's for a single pod.
  std::vector<std::string> nodes;  // Names. Empty means all.
  std::string selector;            // A label selector for nodes.
  std::string pod, file;           // For explain; exactly one is given.
  unsigned devices = 1;            // For consolidate: number of devices to empty.
  std::string container, memory;   // For set: the pod's container and the new amount.
  Changes* changes = nullptr;      // With --watch: the output printed before.
  std::string by;                  // For nodes: the label to group by. Empty means no groups.
};

int show_nodes(const VerbOptions&);
int show_devices(const VerbOptions&);
int show_slices(const VerbOptions&);
int show_explanation(const VerbOptions&);
// Fails if fewer devices can be emptied.
int show_consolidation(const VerbOptions&);
// Fails if a node does not respond; the other nodes are printed.
int show_top(const VerbOptions&);
// Changes the memory of a running pod's slice. Fails if the change is rejected or gets no answer.
int set_slice(const VerbOptions&);
int show_settings(const VerbOptions&);
// Prints the nodes and slices of the cluster as input for carve-replay.
int show_snapshot(const VerbOptions&);
int show_doctor(const VerbOptions&);

// Calls the verb every 2 s and prints what has changed, until a call fails. Returns the exit status of that
// call.
int watch(int (*show)(const VerbOptions&), VerbOptions);

}  // namespace carve::kubernetes::cli
