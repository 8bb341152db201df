#include "kubernetes/coordinator/cache/assumed_pods.h"

#include <ranges>
#include <utility>

#include "core/invariant.h"

namespace carve::kubernetes::coordinator {

AssumedPods::~AssumedPods() {
  for (Earlier& earlier : std::views::reverse(earlier_)) {
    const std::string& uid = earlier.pod->uid;
    if (!earlier.slices)
      cache_.remove_slices(uid);
    else if (earlier.is_reserved)
      cache_.reserve(uid, std::move(*earlier.slices));
    else
      cache_.place(uid, std::move(*earlier.slices));
  }
}

void AssumedPods::remove(const CachedPod& pod) {
  invariant(pod.slices.has_value());
  earlier_.push_back({&pod, pod.slices, pod.is_reserved});
  cache_.remove_slices(pod.uid);
}

void AssumedPods::place(const CachedPod& pod, kubernetes::PodSlices slices) {
  invariant(!pod.slices);
  earlier_.push_back({&pod, std::nullopt, false});
  cache_.place(pod.uid, std::move(slices));
}

}  // namespace carve::kubernetes::coordinator
