// Computes how many replicas a service gets if it scales by its load: desired = ceil(current x metric /
// target), as for a HorizontalPodAutoscaler. A metric within 10 % of its target changes nothing. The number
// increases immediately, and decreases once every recommendation of the last 300 s was lower. The decision is
// pure; the times are those of restart.h.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "workload/restart.h"

namespace carve::workload {

inline constexpr Ns scale_down_stabilisation_ns = 300 * second_ns;
inline constexpr uint64_t scale_tolerance_percent = 10;
inline constexpr Ns load_window_ns = 15 * second_ns;     // The load is measured over this time.
inline constexpr Ns min_load_window_ns = 3 * second_ns;  // A shorter time is not a measurement.

struct AutoscaleTerms {
  unsigned min = 1;  // 1 to max.
  unsigned max = 1;
  uint64_t target = 1;      // Per replica, at least 1.
  std::string metric = {};  // Name of the metric, for the message.
};

struct AutoscaleInput {
  unsigned ready = 0;                  // Replicas that carry the load.
  std::optional<uint64_t> load_milli;  // Thousandths of the metric, over all replicas; unset if not measured.
  // Number of replicas that have a slice, if the last request for another slice was rejected for lack of
  // capacity.
  std::optional<unsigned> fits;
};

struct AutoscaleDecision {
  enum class Limit : uint8_t { none, min, max, capacity, unmeasured };
  unsigned replicas = 1;
  Limit limit = Limit::none;  // The limit that determined the number.
  std::string reason;         // A message.
};

class Autoscaler {
 public:
  // `replicas` is the initially desired number.
  Autoscaler(unsigned replicas, Ns now) : replicas_(replicas) { recommended_.push_back({now, replicas}); }

  // Returns the number of replicas that are desired now. The times of successive calls do not decrease.
  AutoscaleDecision decide(const AutoscaleTerms&, const AutoscaleInput&, Ns now);

 private:
  struct Recommendation {
    Ns at = 0;
    unsigned replicas = 0;
  };
  unsigned stabilised(unsigned recommended, Ns now);

  unsigned replicas_;
  // The recommendations, without those that a later recommendation equals or exceeds, so their numbers
  // decrease.
  std::deque<Recommendation> recommended_;
};

// The load of one service over the last 15 s.
class LoadWindow {
 public:
  // `total` is a counter (requests); if it decreases, a new window begins. `level` is averaged (requests in
  // flight).
  void add(Ns now, uint64_t total, uint64_t level);

  // Return the load in thousandths, or no value before there are samples over 3 s.
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
