// Finds slices whose pod has new amounts in its annotation carve.dev/slices. The coordinator changes the
// annotation of a running pod only after a resize request of the pod's owner, and only its amounts.
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

// Returns the slice that the pod's annotation grants to the slice's holder on this node, or no value if there
// is none or the annotation cannot be read. `pods` are those of this node, by uid.
std::optional<kubernetes::PlacedSlice> placed_for(const api::Slice&, const std::string& node,
                                                  const kubernetes::ObjectsByUid& pods);

struct SliceUpdate {
  std::string slice;
  PodContainer holder;
  api::SliceChange change;
  bool is_awaited = false;  // The coordinator waits for the result and reports a rejection.

  friend bool operator==(const SliceUpdate&, const SliceUpdate&) = default;
};

// Returns the message about an update for the pod's owner, such as "the slice now has 6 GiB of each device".
// `refusal` is the agent's reason, or empty if the update was carried out.
std::string update_note(const SliceUpdate&, const std::string& refusal);

// Returns the due updates. `pods` are those of this node, by uid. The agent keeps one amount for all parts of
// a slice, so slices with unequal parts are skipped, as are slices on other devices than in the annotation.
std::vector<SliceUpdate> find_updates(const std::vector<api::Slice>&, const std::string& node,
                                      const kubernetes::ObjectsByUid& pods);

// The agent's response to an update, by slice. The refusal is empty if the agent carried out the update, and
// has no value until the agent has responded.
struct UpdateAnswer {
  SliceUpdate update;
  std::optional<std::string> refusal;
};
using UpdateAnswers = std::map<std::string, UpdateAnswer>;

// Returns the results of the changes that the pods' annotations request, as far as they are known. The change
// of a container without a slice counts as carried out, because the container starts with the new amounts.
std::vector<kubernetes::ChangeResult> find_results(const std::vector<api::Slice>&, const std::string& node,
                                                   const kubernetes::ObjectsByUid& pods,
                                                   const UpdateAnswers&);

}  // namespace carve::kubernetes::node
