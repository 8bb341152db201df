#include "replay/churn.h"

#include <algorithm>
#include <chrono>

namespace carve::replay {
namespace {

using Wide = unsigned __int128;

constexpr unsigned point = 20;  // Times are seconds * 2^20.
constexpr uint64_t hour = uint64_t{3600} << point;

uint64_t own_lifetime(const Pod& p, const ChurnPlan& plan) {
  return std::clamp<uint64_t>(p.deleted - p.created, 1, plan.longest_seconds) << point;
}

struct Leaving {
  uint64_t when;
  uint64_t number;  // Number of the arrival. At equal times, the earlier arrival leaves first.
  place::RequestClass request_class;
  place::Assignment assignment;
};
bool later(const Leaving& a, const Leaving& b) {
  return a.when != b.when ? a.when > b.when : a.number > b.number;
}

}  // namespace

double Churned::lost_percent(size_t c) const {
  return asked[c] == 0 ? 0 : 100.0 * static_cast<double>(lost[c]) / static_cast<double>(asked[c]);
}

double Churned::lost_percent() const {
  uint64_t all_asked = 0;
  uint64_t all_lost = 0;
  for (size_t c = 1; c < class_names.size(); ++c) all_asked += asked[c], all_lost += lost[c];
  return all_asked == 0 ? 0 : 100.0 * static_cast<double>(all_lost) / static_cast<double>(all_asked);
}

Outcome<Churned> churn(const Cluster& cluster, const Trace& trace, Strategy strategy, bool known,
                       const ChurnPlan& plan, uint64_t seed) {
  const bool own = plan.lifetimes == Lifetimes::trace;
  // Sum over the pods of demand * mean lifetime, which is the device time of one pass through the trace.
  Wide occupied = 0;
  for (const Pod& p : trace.pods) occupied += Wide{p.demand()} * (own ? own_lifetime(p, plan) : hour);
  if (own && std::ranges::all_of(trace.pods, [](const Pod& p) { return p.deleted == 0; }))
    return failure(FailureKind::invalid_argument, "trace '{}' has no creation_time and deletion_time",
                   trace.name);
  if (occupied == 0)
    return failure(FailureKind::invalid_argument, "trace '{}' requests no devices", trace.name);
  // Mean time between arrivals: occupied / pods / (load * capacity).
  const auto gap = static_cast<uint64_t>(occupied / trace.pods.size() * 1000 / plan.load_permille /
                                         (cluster.devices() * 1000));

  Setup setup(cluster, trace, strategy, known, seed);
  Random when(seed, gaps);
  Random how_long(seed, lifetimes);
  Random who(seed, who_comes);
  std::vector<Leaving> leaving;  // A heap with the next pod to leave at the front.
  Churned out;
  uint64_t now = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (uint64_t arrival = 0; arrival < plan.warmup + plan.counted; ++arrival) {
    now += static_cast<uint64_t>(Wide{when.exponential()} * gap >> 32);
    while (!leaving.empty() && leaving.front().when <= now) {
      setup.engine.release(leaving.front().request_class, leaving.front().assignment);
      std::ranges::pop_heap(leaving, later);
      leaving.pop_back();
    }
    const uint64_t i = who.below(trace.pods.size());
    const Pod& pod = trace.pods[i];
    // Drawn even if the pod does not fit, so that all strategies get the same arrivals.
    const uint64_t drawn = how_long.exponential();
    const uint64_t stays = own ? own_lifetime(pod, plan) : static_cast<uint64_t>(Wide{drawn} * hour >> 32);
    const auto assignment = setup.engine.place(setup.classes[i]);
    if (assignment) {
      leaving.push_back({now + stays, arrival, setup.classes[i], *assignment});
      std::ranges::push_heap(leaving, later);
    }
    if (arrival < plan.warmup) continue;
    const uint64_t size = pod.devices == 0 ? 1 : pod.demand();
    out.asked[class_of(pod)] += size;
    if (!assignment) out.lost[class_of(pod)] += size;
  }
  out.effort.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  out.effort.decisions = plan.warmup + plan.counted;
  out.effort.bytes_per_node = setup.engine.bytes_per_node();
  out.effort.classes = setup.engine.classes();
  return out;
}

}  // namespace carve::replay
