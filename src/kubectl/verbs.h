// The verbs of kubectl-carve that call the cluster: options, questions to kubectl, output. Each returns the
// exit status.
#pragma once

#include <string>

#include "kubectl/changes.h"
#include "kubectl/kubectl_command.h"
#include "kubectl/table.h"

namespace carve::kubectl {

inline constexpr int failed_status = 1, usage_status = 2;

struct VerbOptions {
  KubectlOptions kubectl;
  Form form = Form::table;
  std::string name_space;         // Of pods; empty: all, or kubectl's default for a single pod.
  std::string selector;           // Of nodes: a label selector.
  std::string pod, file;          // Of explain: one of them.
  unsigned devices = 1;           // Of consolidate: to empty.
  std::string container, memory;  // Of set: which of the pod's; the new amount.
  Changes* changes = nullptr;     // With --watch: what was printed before.
  std::string by;                 // Of nodes: the label by which they are grouped; empty: they are not.
};

int show_nodes(const VerbOptions&);
int show_devices(const VerbOptions&);
int show_slices(const VerbOptions&);
int show_explanation(const VerbOptions&);
// Fails if fewer devices can be emptied.
int show_consolidation(const VerbOptions&);
// Fails if a node does not answer; the others are printed.
int show_top(const VerbOptions&);
// Changes the memory of a running pod's slice. Fails if it is refused, or not answered.
int set_slice(const VerbOptions&);
int show_settings(const VerbOptions&);
// Prints the books as carve-replay reads them.
int show_snapshot(const VerbOptions&);
int show_doctor(const VerbOptions&);

// Calls the verb every 2 s and prints what changes, until a round has no result; returns its exit status.
int watch(int (*show)(const VerbOptions&), VerbOptions);

// Returns a text as a query of a URL has it: all but letters, digits and -._~ as %XX.
std::string escaped(const std::string& text);

}  // namespace carve::kubectl
