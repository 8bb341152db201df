#include "kubernetes/coordinator/snapshot/cluster_pod.h"

namespace carve::kubernetes::coordinator {

ClusterPod read_pod(const kubernetes::ObjectMeta& object) {
  ClusterPod out{.uid = object.uid,
                 .name_space = object.name_space,
                 .name = object.name,
                 .request = {},
                 .slices = {},
                 .is_deleting = object.is_deleting,
                 .created = object.created,
                 .problem = ""};
  const auto take = [&](auto read, auto& to) {
    if (read)
      to = std::move(*read);
    else
      out.problem += (out.problem.empty() ? "" : "; ") + read.error();
  };
  if (const auto found = object.annotations.find(kubernetes::request_annotation);
      found != object.annotations.end())
    take(kubernetes::read_request(found->second), out.request);
  if (const auto found = object.annotations.find(kubernetes::slices_annotation);
      found != object.annotations.end())
    take(kubernetes::read_slices(found->second), out.slices);
  return out;
}

}  // namespace carve::kubernetes::coordinator
