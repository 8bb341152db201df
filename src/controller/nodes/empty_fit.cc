#include "controller/nodes/empty_fit.h"

#include "controller/objects/job_form.h"

namespace carve::controller {

Outcome<void> check_fits_empty(SliceForecast empty, const std::string& pool, const workload::JobNeed& need) {
  const uint64_t slices = workload::slice_count(need);
  uint64_t granted = 0;
  for (const workload::SliceGroup& group : need.groups)
    for (uint32_t i = 0; i < group.slices; ++i, ++granted) {
      const auto place = empty.place({.pool = pool}, group.amounts);
      if (place) continue;
      if (place.error().kind != FailureKind::insufficient_capacity) return {};
      if (granted == 0)
        return failure(FailureKind::failed_precondition,
                       "no node has room for a slice of {}, even if it is empty; request less: {}",
                       slice_text(need), place.error().message);
      return failure(FailureKind::failed_precondition,
                     "all devices together have room for only {} of the job's {} slices of {}, even if they "
                     "are empty, but all slices are granted together; request smaller or fewer slices",
                     granted, slices, slice_text(need));
    }
  return {};
}

}  // namespace carve::controller
