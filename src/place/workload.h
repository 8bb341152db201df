// The workload model M: which kinds of requests are typical, and how likely each is. Fragmentation has no
// meaning without it: what is left over is wasted only if nothing that tends to come can use it.
//
// A Workload is a list of kinds with weights; a Census makes one from what arrived, with decayed counts, most
// popular first up to 95 % of the arrivals, as the paper does with a trace. Weights are integers in units of
// 2^-30, so that the same arrivals give the same model on every machine.
#pragma once

#include <cstdint>
#include <vector>

#include "place/request_shape.h"

namespace carve::place {

inline constexpr int64_t certain = int64_t{1} << 30;  // Probability 1.
inline constexpr unsigned max_types = 512;

struct Type {
  RequestShape shape;
  int64_t weight = 0;  // In 2^-30; those of a workload add up to about `certain`.
};
using WorkloadModel = std::vector<Type>;

// What of a request makes its type: CPU, host memory, devices, share, memory and models. The rest does not
// change what it can use.
RequestShape type_of(const RequestShape&);

// The most popular types until `coverage` of all is there, scaled so that their weights add up to `certain`
// up to rounding.
WorkloadModel typical(const WorkloadModel&, Share coverage = {9500});

// The same with types that differ in host memory alone made one, as the paper groups them.
WorkloadModel without_host_memory(const WorkloadModel&);

// Counts arrivals. Old ones fade: after each `half_life` arrivals a count is worth half.
class ArrivalCounts {
 public:
  explicit ArrivalCounts(uint64_t half_life = 1 << 16) : half_life_(half_life) {}

  void count(const RequestShape&);
  uint64_t counted() const { return counted_; }

  // All that is counted, most popular first, equals in the order of Ask.
  WorkloadModel workload() const;

 private:
  struct Row {
    RequestShape shape;
    uint64_t count;  // In 2^-20.
  };
  std::vector<Row> rows_;  // Sorted by ask.
  uint64_t half_life_;
  uint64_t counted_ = 0;
};

}  // namespace carve::place
