// The workload model M: the typical request classes and the probability of each. Fragmentation is defined in
// terms of it: free capacity is wasted only if no expected request can use it.
//
// A WorkloadModel is a list of types with weights. ArrivalCounts makes one from the arrivals, with decayed
// counts. The most popular types come first, up to 95 % of the arrivals, as FGD (decision 0004) does with a
// trace.
// Weights are integers in units of 2^-30, so that the same arrivals give the same model on every machine.
#pragma once

#include <cstdint>
#include <vector>

#include "place/request_shape.h"

namespace carve::place {

inline constexpr int64_t certain = int64_t{1} << 30;  // Probability 1, in 2^-30.
inline constexpr unsigned max_types = 512;

struct Type {
  RequestShape shape;
  int64_t weight = 0;  // In 2^-30; the weights of a workload add up to about `certain`.
};
using WorkloadModel = std::vector<Type>;

// Returns the type of a request: CPU, host memory, devices, share, memory and models. The other fields do not
// affect which capacity it can use.
RequestShape type_of(const RequestShape&);

// Returns the most popular types that together make up `coverage`, scaled so that their weights add up to
// `certain`, except for rounding.
WorkloadModel typical(const WorkloadModel&, Share coverage = {9500});

// Returns the workload after merging types that differ only in host memory, as the paper groups them.
WorkloadModel without_host_memory(const WorkloadModel&);

// Counts arrivals with decay: after `half_life` further arrivals, a count has half of its weight.
class ArrivalCounts {
 public:
  explicit ArrivalCounts(uint64_t half_life = 1 << 16) : half_life_(half_life) {}

  void count(const RequestShape&);
  uint64_t counted() const { return counted_; }

  // Returns all counts as a model, the most popular first. Ties are in the order of RequestShape.
  WorkloadModel workload() const;

 private:
  struct Row {
    RequestShape shape;
    uint64_t count;  // In 2^-20.
  };
  std::vector<Row> rows_;  // Sorted by shape.
  uint64_t half_life_;
  uint64_t counted_ = 0;
};

}  // namespace carve::place
