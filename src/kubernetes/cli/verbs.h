// The verbs of kubectl-carve that call the cluster: options, calls of kubectl, output. Each returns the
// exit status.
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
  Changes* changes = nullptr;      // With --watch: what was printed before.
  std::string by;                  // For nodes: the label to group by. Empty means no groups.
};

int show_nodes(const VerbOptions&);
int show_devices(const VerbOptions&);
int show_slices(const VerbOptions&);
int show_explanation(const VerbOptions&);
// Fails if fewer devices can be emptied.
int show_consolidation(const VerbOptions&);
// Fails if a node does not answer; the others are printed.
int show_top(const VerbOptions&);
// Changes the memory of a running pod's slice. Fails if the change is refused or gets no answer.
int set_slice(const VerbOptions&);
int show_settings(const VerbOptions&);
// Prints the nodes and slices of the cluster as carve-replay reads them.
int show_snapshot(const VerbOptions&);
int show_doctor(const VerbOptions&);

// Calls the verb every 2 s and prints what changes, until a round has no result; returns its exit status.
int watch(int (*show)(const VerbOptions&), VerbOptions);

}  // namespace carve::kubernetes::cli
