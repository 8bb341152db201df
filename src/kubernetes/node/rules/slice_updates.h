// Finds slices whose pod has new amounts in its annotation carve.dev/slices. The coordinator changes the
// annotation of a running pod after a resize request of the pod's owner; nothing else in it ever changes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kubernetes/api/answers.h"
#include "kubernetes/format/node_ledger.h"
#include "kubernetes/format/pod_slices.h"
#include "wire/api/slice.h"

namespace carve::kubernetes::node {

// Returns what the pod's annotation grants to the slice's holder on this node, or no value if there is
// nothing or it cannot be read. `pods` are this node's, by uid.
std::optional<kubernetes::PlacedSlice> placed_for(const api::Slice&, const std::string& node,
                                                  const kubernetes::ObjectsByUid& pods);

struct SliceUpdate {
  std::string slice;
  PodContainer holder;
  api::SliceChange change;
  bool is_awaited = false;  // The coordinator waits for the result, and reports a rejection itself.

  friend bool operator==(const SliceUpdate&, const SliceUpdate&) = default;
};

// Returns "the slice has 6 GiB on each of its devices now" or "... stays ...": the message about an update
// for the pod's owner. `refusal` is the agent's reason; empty if the update is done.
std::string update_note(const SliceUpdate&, const std::string& refusal);

// `pods` are this node's, by uid. The agent keeps one amount for all parts of a slice, so a slice with
// different parts is left as it is, and so is a slice on other devices than in the annotation.
std::vector<SliceUpdate> find_updates(const std::vector<api::Slice>&, const std::string& node,
                                      const kubernetes::ObjectsByUid& pods);

// The agent's response to an update, by slice. The refusal is empty if the agent carried out the update, and
// absent until it has responded.
struct UpdateAnswer {
  SliceUpdate update;
  std::optional<std::string> refusal;
};
using UpdateAnswers = std::map<std::string, UpdateAnswer>;

// Returns the results of the changes that the pods' annotations request, as far as they are known. A
// container without a slice begins with the new amounts, so its change is carried out.
std::vector<kubernetes::ChangeResult> find_results(const std::vector<api::Slice>&, const std::string& node,
                                                   const kubernetes::ObjectsByUid& pods,
                                                   const UpdateAnswers&);

}  // namespace carve::kubernetes::node
