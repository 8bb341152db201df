#include "workload/autoscale.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/invariant.h"

namespace carve::workload {
namespace {

using Limit = AutoscaleDecision::Limit;

constexpr Ns min_sample_interval_ns = second_ns / 10;
constexpr uint64_t milli = 1000;

uint64_t product(uint64_t a, uint64_t b) {
  uint64_t out = 0;
  return __builtin_mul_overflow(a, b, &out) ? std::numeric_limits<uint64_t>::max() : out;
}

// Returns whether the load is within the tolerance of the target, for this many replicas.
bool is_within_tolerance(uint64_t load_milli, uint64_t wanted_milli) {
  const uint64_t tolerance =
      wanted_milli / 100 * scale_tolerance_percent + wanted_milli % 100 * scale_tolerance_percent / 100;
  return load_milli >= wanted_milli - tolerance &&
         load_milli - std::min(load_milli, wanted_milli) <= tolerance;
}

// ceil(current x metric / target). The metric is the load per replica, so the number of replicas cancels out.
unsigned recommended_for(const AutoscaleTerms& terms, uint64_t load_milli, unsigned present, unsigned ready) {
  if (is_within_tolerance(load_milli, product(product(terms.target, milli), ready))) return present;
  const uint64_t target_milli = product(terms.target, milli);
  const uint64_t wanted = load_milli / target_milli + (load_milli % target_milli != 0 ? 1 : 0);
  return static_cast<unsigned>(std::min<uint64_t>(wanted, std::numeric_limits<unsigned>::max()));
}

std::string measured_text(const AutoscaleTerms& terms, uint64_t load_milli, unsigned ready) {
  const uint64_t each = load_milli / ready;
  return fmt::format("{} is {}.{} per replica over {} replica{}, and the target is {}", terms.metric,
                     each / milli, each % milli / 100, ready, ready == 1 ? "" : "s", terms.target);
}

}  // namespace

unsigned Autoscaler::stabilised(unsigned recommended, Ns now) {
  while (!recommended_.empty() && recommended_.back().replicas <= recommended) recommended_.pop_back();
  recommended_.push_back({now, recommended});
  while (after(recommended_.front().at, scale_down_stabilisation_ns) < now && recommended_.size() > 1)
    recommended_.pop_front();
  return recommended_.front().replicas;
}

AutoscaleDecision Autoscaler::decide(const AutoscaleTerms& terms, const AutoscaleInput& in, Ns now) {
  invariant(terms.min >= 1, "a service that scales has a replica");
  invariant(terms.min <= terms.max, "min must not exceed max");
  invariant(terms.target >= 1, "a target is positive");
  AutoscaleDecision out;
  if (!in.load_milli || in.ready == 0) {
    out.replicas = std::clamp(replicas_, terms.min, terms.max);
    out.limit = Limit::unmeasured;
    out.reason =
        fmt::format("{} is not measured: {}", terms.metric,
                    in.ready == 0 ? "no replica is ready" : "less than 3 s have been measured so far");
  } else {
    const unsigned recommended = recommended_for(terms, *in.load_milli, replicas_, in.ready);
    const unsigned held = stabilised(recommended, now);
    out.replicas = std::clamp(held, terms.min, terms.max);
    out.reason = measured_text(terms, *in.load_milli, in.ready);
    if (held <= terms.min && recommended < terms.min) {
      out.limit = Limit::min;
      out.reason += fmt::format("; the load needs {}, but min is {}", recommended, terms.min);
    } else if (held > terms.max) {
      out.limit = Limit::max;
      out.reason += fmt::format("; the load needs {}, but max is {}", held, terms.max);
    } else if (held > recommended) {
      out.reason += fmt::format("; the load needs {}, but {} are kept for {} s after a higher load",
                                recommended, held, scale_down_stabilisation_ns / second_ns);
    }
  }
  if (in.fits && out.replicas > std::max(*in.fits, terms.min)) {
    const unsigned wanted = out.replicas;
    out.replicas = std::max(*in.fits, terms.min);
    out.limit = Limit::capacity;
    out.reason += fmt::format("; {} are desired, but the devices have capacity for {}", wanted, *in.fits);
  }
  replicas_ = out.replicas;
  invariant(out.replicas >= terms.min, "at least min replicas are desired");
  invariant(out.replicas <= terms.max, "at most max replicas are desired");
  return out;
}

void LoadWindow::add(Ns now, uint64_t total, uint64_t level) {
  if (!samples_.empty() && total < samples_.back().total) samples_.clear();
  if (!samples_.empty() && now < after(samples_.back().at, min_sample_interval_ns)) return;
  samples_.push_back({now, total, level});
  while (samples_.size() > 2 && after(samples_[1].at, load_window_ns) <= now) samples_.pop_front();
}

bool LoadWindow::is_long_enough() const {
  return !samples_.empty() && after(samples_.front().at, min_load_window_ns) <= samples_.back().at;
}

std::optional<uint64_t> LoadWindow::per_second_milli() const {
  if (!is_long_enough()) return std::nullopt;
  const Ns span_ms = (samples_.back().at - samples_.front().at) / (second_ns / 1000);
  return product(samples_.back().total - samples_.front().total, milli * 1000) /
         static_cast<uint64_t>(span_ms);
}

std::optional<uint64_t> LoadWindow::mean_level_milli() const {
  if (!is_long_enough()) return std::nullopt;
  uint64_t sum = 0;
  for (const Sample& sample : samples_) sum += std::min<uint64_t>(sample.level, UINT32_MAX);
  return sum * milli / samples_.size();
}

}  // namespace carve::workload
