// How many replicas a service gets that scales by its load: desired = ceil(current x metric / target), as
// HorizontalPodAutoscalers compute it. A metric within 10 % of its target changes nothing. More replicas are
// desired at once; fewer when every recommendation of the last 300 s was lower. Pure; the moments are those
// of restart.h.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "workload/restart.h"

namespace carve::workload {

inline constexpr Ns scale_down_stabilisation_ns = 300 * second_ns;
inline constexpr uint64_t scale_tolerance_percent = 10;
inline constexpr Ns load_window_ns = 15 * second_ns;     // Over which a load is measured.
inline constexpr Ns min_load_window_ns = 3 * second_ns;  // Less than this is no measurement.

struct AutoscaleTerms {
  unsigned min = 1;  // 1 to max.
  unsigned max = 1;
  uint64_t target = 1;      // Per replica, from 1 up.
  std::string metric = {};  // Name of the metric, for the sentence.
};

struct AutoscaleInput {
  unsigned ready = 0;                  // Replicas that carry the load.
  std::optional<uint64_t> load_milli;  // Thousandths of the metric, over all replicas; none: not measured.
  // Replicas that hold a slice, if the last request for another one was refused for lack of capacity.
  std::optional<unsigned> fits;
};

struct AutoscaleDecision {
  enum class Limit : uint8_t { none, min, max, capacity, unmeasured };
  unsigned replicas = 1;
  Limit limit = Limit::none;  // What the number is bounded by.
  std::string reason;         // A sentence.
};

class Autoscaler {
 public:
  // `replicas`: the number that is desired at the beginning.
  Autoscaler(unsigned replicas, Ns now) : replicas_(replicas) { recommended_.push_back({now, replicas}); }

  // Returns how many replicas are desired now. The moments of calls do not decrease.
  AutoscaleDecision decide(const AutoscaleTerms&, const AutoscaleInput&, Ns now);

 private:
  struct Recommendation {
    Ns at = 0;
    unsigned replicas = 0;
  };
  unsigned stabilised(unsigned recommended, Ns now);

  unsigned replicas_;
  // The recommendations that a later and equal or higher one has not made superfluous: numbers fall.
  std::deque<Recommendation> recommended_;
};

// The load of one service over the last 15 s.
class LoadWindow {
 public:
  // `total`: a count that grows (requests). A count that falls begins a new window. `level`: a level that is
  // averaged (requests in flight).
  void add(Ns now, uint64_t total, uint64_t level);

  // Return thousandths; no value until samples over 3 s are there.
  std::optional<uint64_t> per_second_milli() const;
  std::optional<uint64_t> mean_level_milli() const;

 private:
  struct Sample {
    Ns at = 0;
    uint64_t total = 0;
    uint64_t level = 0;
  };
  bool is_long_enough() const;

  std::deque<Sample> samples_;  // At least 1/10 s apart, so at most 151.
};

}  // namespace carve::workload
