#include "node/devices/work_samples.h"

#include <algorithm>
#include <cmath>

namespace carve::node {
namespace {

constexpr uint64_t second = 1'000'000;
constexpr uint64_t recent_window_us = 3 * second, proof_window_us = 24 * second;
// A sample of this age belongs to a process that no longer works. Drivers record one every 1/6 s to 1 s.
constexpr uint64_t stale_us = 2 * second;
constexpr double confidence = 14;  // -ln of the probability that a bound is wrong: 1 in 1,200,000.

// Returns the divergence of a part `k` of the periods from the probability `p`: after n periods, the
// probability of a part at least as far from p is at most exp(-n * divergence).
double divergence(double k, double p) {
  const auto term = [](double x, double y) { return x <= 0 ? 0 : x * std::log(x / y); };
  return term(k, p) + term(1 - k, 1 - p);
}

// Returns the largest (or smallest) probability that is consistent with a part `k` of `n` periods.
double bound(double k, double n, bool upper) {
  double near = k, far = upper ? 1 : 0;
  for (int i = 0; i < 30; ++i) {
    const double middle = (near + far) / 2;
    (n * divergence(k, middle) > confidence ? far : near) = middle;
  }
  return near;
}

// The driver counts whole percents, and over other periods than the arbiter.
WorkShown counted(unsigned percent) {
  return {percent, percent > 0, percent, percent, std::min(100u, percent + percent / 4), 0};
}

unsigned percent_of(double part) {
  return static_cast<unsigned>(std::lround(100 * std::clamp(part, 0.0, 1.0)));
}

}  // namespace

void WorkSamples::add(std::span<const nvmlProcessUtilizationSample_t> samples, std::span<const unsigned> pids,
                      uint64_t now_us) {
  // If the clock was set back, everything earlier is dropped.
  if (now_us < now_us_) answers_.clear(), listed_since_us_.clear();
  Answer answer{.from_us = now_us_ == 0 ? now_us : std::min(now_us_, now_us),
                .to_us = now_us,
                .percent = {},
                .periods = 0};
  std::set<uint64_t> times, times_of_work;
  for (const nvmlProcessUtilizationSample_t& s : samples) {
    answer.percent[s.pid] = std::min(s.smUtil, 100u);
    times.insert(s.timeStamp);
    if (s.smUtil > 0) times_of_work.insert(s.timeStamp);
  }
  answer.periods = static_cast<unsigned>(times_of_work.size());
  counts_each_ |= times.size() < answer.percent.size();
  answers_.push_back(std::move(answer));
  now_us_ = now_us;
  while (answers_.front().to_us + proof_window_us < now_us_) answers_.pop_front();
  std::map<unsigned, uint64_t> listed;
  for (const unsigned pid : pids) {
    const auto known = listed_since_us_.find(pid);
    listed[pid] = known == listed_since_us_.end() ? now_us_ : known->second;
  }
  listed_since_us_ = std::move(listed);
}

WorkSamples::Bounds WorkSamples::bounds(unsigned pid, uint64_t from_us) const {
  double time = 0, mine = 0, all = 0, periods = 0;
  for (const Answer& answer : answers_) {
    if (answer.from_us < from_us) continue;
    const auto length = static_cast<double>(answer.to_us - answer.from_us);
    time += length;
    periods += answer.periods;
    for (const auto& [other, percent] : answer.percent) {
      all += length * percent / 100;
      if (other == pid) mine += length * percent / 100;
    }
  }
  if (time == 0) return {0, 0, 1};
  const double busy = std::min(1.0, all / time), part = std::min(busy, mine / time);
  if (busy == 0) return {0, 0, 1};
  // Relative to the busy time, because only the choice of the recorded process is random.
  const double k = part / busy;
  return {part, busy * bound(k, periods, false), busy * bound(k, periods, true)};
}

WorkShown WorkSamples::shown(unsigned pid) const {
  const auto listed = listed_since_us_.find(pid);
  if (listed == listed_since_us_.end()) return {};
  if (counts_each_) {
    for (auto answer = answers_.rbegin(); answer != answers_.rend() && answer->to_us + stale_us >= now_us_;
         ++answer)
      if (const auto mine = answer->percent.find(pid); mine != answer->percent.end())
        return counted(mine->second);
    return {};
  }
  const auto from = [&](uint64_t window) {
    return std::max(listed->second, now_us_ - std::min(now_us_, window));
  };
  const uint64_t proof_from = from(proof_window_us);
  const Bounds proof = bounds(pid, proof_from);
  return {percent_of(bounds(pid, from(recent_window_us)).part),
          proof.part > 0,
          percent_of(proof.part),
          percent_of(proof.at_least),
          percent_of(proof.at_most),
          static_cast<int64_t>(now_us_ - std::min(now_us_, proof_from)) * 1000};
}

}  // namespace carve::node
