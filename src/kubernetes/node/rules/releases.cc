#include "kubernetes/node/rules/releases.h"

#include "kubernetes/node/rules/pod_object.h"

namespace carve::kubernetes::node {

std::vector<OrphanCandidate> find_orphans(const std::vector<api::Slice>& slices,
                                          const kubernetes::ObjectsByUid& pods) {
  std::vector<OrphanCandidate> out;
  for (const api::Slice& slice : slices)
    if (slice.state != SliceState::ended && slice.holder && slice.holder->pod &&
        !pods.contains(slice.holder->pod->uid))
      out.push_back({slice.name, *slice.holder->pod});
  return out;
}

bool proves_gone(const kubernetes::ApiAnswer& answer, const PodContainer& holder) {
  if (answer.status == 404) return kubernetes::read_status(answer.body).reason == "NotFound";
  if (answer.status != 200) return false;
  const auto pod = read_pod_object(answer.body);
  return pod && (pod->meta.uid != holder.uid || pod->is_over);
}

}  // namespace carve::kubernetes::node
