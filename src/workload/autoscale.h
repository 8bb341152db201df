// How many replicas a service gets that scales by its load: desired = ceil(current x metric / target), as
// HorizontalPodAutoscalers compute it. A metric within 10 % of its target changes nothing. The number rises
// immediately, and falls when every recommendation of the last 300 s was lower. Pure; the times are those of
// restart.h.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "workload/restart.h"

namespace carve::workload {

inline constexpr Ns scale_down_stabilisation_ns = 300 * second_ns;
inline constexpr uint64_t scale_tolerance_percent = 10;
inline constexpr Ns load_window_ns = 15 * second_ns;     // A load is measured over this time.
inline constexpr Ns min_load_window_ns = 3 * second_ns;  // A shorter time is not a measurement.

struct AutoscaleTerms {
  unsigned min = 1;  // 1 to max.
  unsigned max = 1;
  uint64_t target = 1;      // Per replica, at least 1.
  std::string metric = {};  // Name of the metric, for the message.
};

struct AutoscaleInput {
  unsigned ready = 0;                  // Replicas that carry the load.
  std::optional<uint64_t> load_milli;  // Thousandths of the metric, over all replicas; none if not measured.
  // Replicas that hold a slice, if the last request for another one was refused for lack of capacity.
  std::optional<unsigned> fits;
};

struct AutoscaleDecision {
  enum class Limit : uint8_t { none, min, max, capacity, unmeasured };
  unsigned replicas = 1;
  Limit limit = Limit::none;  // The limit that bounds the number.
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
  // The recommendations without those that a later and equal or higher one made superfluous: their numbers
  // fall.
  std::deque<Recommendation> recommended_;
};

// The load of one service over the last 15 s.
class LoadWindow {
 public:
  // `total` is a growing count (requests); a count that falls begins a new window. `level` is averaged
  // (requests in flight).
  void add(Ns now, uint64_t total, uint64_t level);

  // Return thousandths; no value before there are samples over 3 s.
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
