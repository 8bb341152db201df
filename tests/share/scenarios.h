// The scenarios that measure shares in virtual time (world.h). Each returns a figure that tests assert and
// ./bench share prints.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "world.h"

namespace carve::share {

struct Shape {
  std::string name;
  Behaviour does;
  unsigned threads = 1;

  Ns longest() const { return std::max(does.kernel, does.longest) * does.nodes; }
};

// Returns every kernel length, narrow and wide, with and without synchronisation, graphs, and several
// streams.
inline std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (const Ns kernel : {5 * us, 20 * us, 200 * us, 5 * ms, 50 * ms}) {
    const std::string length =
        kernel < ms ? std::to_string(kernel / us) + "us" : std::to_string(kernel / ms) + "ms";
    all.push_back({length, {.kernel = kernel}});
    all.push_back({length + " sync", {.kernel = kernel, .sync = true}});
    all.push_back({length + " narrow x4", {.kernel = kernel, .width = 18}, 4});
  }
  all.push_back({"graph 10x5us", {.kernel = 5 * us, .nodes = 10}});
  all.push_back({"graph 10x100us", {.kernel = 100 * us, .nodes = 10}});
  all.push_back({"graph 10x5us sync x4", {.kernel = 5 * us, .nodes = 10, .sync = true}, 4});
  all.push_back({"5..400us", {.kernel = 5 * us, .longest = 400 * us}});
  return all;
}

struct Error {
  double worst = 0, mean = 0;  // Percentage points of the device, over windows of a second.
};

inline Entitlement entitlement(Policy policy, uint32_t bp) { return {.policy = policy, .share = {bp}}; }

// Returns the difference between each client's charged share and its granted share.
inline Error share_error(Policy policy, const std::vector<uint32_t>& shares, const Shape& shape,
                         int windows = 4, uint64_t seed = 1, Delays delays = {}) {
  World w({}, seed, delays);
  for (const uint32_t share : shares)
    w.add(entitlement(policy, share), std::vector<Behaviour>(shape.threads, shape.does));
  w.run(1 * second);
  Error e;
  std::vector<Ns> before(shares.size());
  for (int k = 0; k < windows; ++k) {
    w.settle();
    for (unsigned i = 0; i < shares.size(); ++i) before[i] = w.charged(i);
    w.run(1 * second);
    w.settle();
    for (unsigned i = 0; i < shares.size(); ++i) {
      const double had = static_cast<double>(w.charged(i) - before[i]) / 1e7;
      const double off = std::abs(had - shares[i] / 100.0);
      e.worst = std::max(e.worst, off);
      e.mean += off / static_cast<double>(windows * static_cast<int>(shares.size()));
    }
  }
  return e;
}

// Returns the part of the device that a program of this shape uses when no other program runs.
inline double duty(const Shape& shape) {
  World w;
  const unsigned a =
      w.add(entitlement(Policy::native_burst_share, 5000), std::vector<Behaviour>(shape.threads, shape.does));
  w.run(1 * second);
  return static_cast<double>(w.kernel_time(a)) / 1e9;
}

inline const std::vector<std::vector<uint32_t>>& mixes() {
  static const std::vector<std::vector<uint32_t>> all = {{100},
                                                         {500},
                                                         {1000},
                                                         {2500},
                                                         {3000},
                                                         {5000},
                                                         {7000},
                                                         {9000},
                                                         {9900},
                                                         {100, 9900},
                                                         {500, 9500},
                                                         {1000, 9000},
                                                         {2500, 7500},
                                                         {3000, 7000},
                                                         {5000, 5000},
                                                         {2000, 3000, 5000},
                                                         {1000, 2000, 3000, 4000},
                                                         std::vector<uint32_t>(16, 625)};
  return all;
}

// Measures all shapes and all mixes of shares. Shapes with longer kernels are measured relative to their
// bound. Shapes that would not use their share even without others are left out, because they do not want it.
inline double error_bound(const Shape& shape);
struct Judged {
  double worst = 0, mean = 0, worst_of_bound = 0;
  std::string where;
};
inline Judged judge(Policy policy, int windows) {
  Judged j;
  int count = 0;
  for (const Shape& shape : shapes()) {
    const double wants = 10000 * duty(shape);
    for (const auto& mix : mixes()) {
      if (mix.size() == 1 && policy != Policy::fixed_share) continue;
      if (*std::ranges::max_element(mix) > wants) continue;
      const Error e = share_error(policy, mix, shape, windows);
      if (shape.longest() > ms) {
        j.worst_of_bound = std::max(j.worst_of_bound, e.worst / error_bound(shape));
        continue;
      }
      j.mean += e.mean;
      ++count;
      if (e.worst <= j.worst) continue;
      j.worst = e.worst;
      j.where = shape.name + " by " + std::to_string(mix.size());
    }
  }
  j.mean /= count;
  return j;
}

// Returns the error bound in points, which is due to saved tokens, work in flight and one kernel that cannot
// be interrupted.
inline double error_bound(const Shape& shape) {
  const Tuning t;
  return 100.0 * static_cast<double>(t.depth() + t.in_flight_limit + shape.longest()) / 1e9;
}

// Measures burst clients that come and go: returns the device's busy part of the time during which any client
// wanted it.
inline double conserved(uint64_t seed = 1) {
  World w({}, seed);
  w.add(entitlement(Policy::guaranteed_burst_share, 2000), {{.kernel = 200 * us}});
  w.add(entitlement(Policy::guaranteed_burst_share, 3000),
        {{.kernel = 200 * us, .busy_for = 90 * ms, .idle_for = 60 * ms}});
  w.add(entitlement(Policy::guaranteed_burst_share, 5000),
        {{.kernel = 400 * us, .busy_for = 300 * ms, .idle_for = 500 * ms}});
  w.run(10 * second);
  return 100.0 * static_cast<double>(w.in_flight()) / static_cast<double>(w.wanted());
}

// Returns the kernel time of a burst client without others, in percent of that without an arbiter.
inline double alone(Policy policy) {
  const auto kernel_time = [](const Entitlement& t) {
    World w;
    const unsigned a = w.add(t, {{.kernel = 200 * us}});
    w.run(5 * second);
    return static_cast<double>(w.kernel_time(a));
  };
  // Equal native weights are not arbitrated.
  return 100.0 * kernel_time(entitlement(policy, 3000)) /
         kernel_time(entitlement(Policy::native_burst_share, 3000));
}

inline double jain(unsigned clients) {
  World w;
  for (unsigned i = 0; i < clients; ++i)
    w.add(entitlement(Policy::guaranteed_burst_share, 10000 / clients), {{.kernel = 200 * us}});
  w.run(1 * second);
  double least = 1;
  for (int k = 0; k < 4; ++k) {
    w.settle();
    std::vector<Ns> before(clients);
    for (unsigned i = 0; i < clients; ++i) before[i] = w.charged(i);
    w.run(1 * second);
    w.settle();
    double sum = 0, squares = 0;
    for (unsigned i = 0; i < clients; ++i) {
      const auto had = static_cast<double>(w.charged(i) - before[i]);
      sum += had;
      squares += had * had;
    }
    least = std::min(least, sum * sum / (clients * squares));
  }
  return least;
}

// Returns the kernel time of two saturating clients relative to that under the hardware's own time slices.
inline double sum_over_native(Ns quantum_switch = 100 * us) {
  const auto total = [&](Policy policy, uint32_t first, uint32_t other) {
    Tuning t;
    t.switch_cost = quantum_switch;
    World w(t);
    const unsigned a = w.add(entitlement(policy, first), {{.kernel = 200 * us}});
    const unsigned b = w.add(entitlement(policy, other), {{.kernel = 200 * us}});
    w.run(5 * second);
    return static_cast<double>(w.kernel_time(a) + w.kernel_time(b));
  };
  return total(Policy::guaranteed_burst_share, 5000, 5000) / total(Policy::native_burst_share, 5000, 5000);
}

// Returns the error of the worse of two weights in percent of the ratio.
inline double weight_error(uint32_t first, uint32_t other) {
  World w;
  w.add(entitlement(Policy::native_burst_share, first), {{.kernel = 200 * us}});
  w.add(entitlement(Policy::native_burst_share, other), {{.kernel = 200 * us}});
  w.run(1 * second);
  double worst = 0;
  for (int k = 0; k < 4; ++k) {
    w.settle();
    const Ns a = w.charged(0), b = w.charged(1);
    w.run(1 * second);
    w.settle();
    const double ratio = static_cast<double>(w.charged(0) - a) / static_cast<double>(w.charged(1) - b);
    worst = std::max(worst, 100.0 * std::abs(ratio * other / first - 1));
  }
  return worst;
}

struct Latency {
  double leased = 0, native = 0;  // 99th percentile, relative to that without a neighbour.
};
inline Latency latency(const Behaviour& trainer, uint64_t seed = 1) {
  const Behaviour server{.kernel = 500 * us, .requests = 50, .per_request = 10};
  enum class Beside { nobody, leases, hardware };
  const auto p99 = [&](Beside beside) {
    World w({}, seed);
    Entitlement t{
        .policy = Policy::guaranteed_burst_share, .latency = LatencyClass::latency, .share = {3000}};
    if (beside == Beside::hardware) t = entitlement(Policy::native_burst_share, 5000);
    const unsigned a = w.add(t, {server});
    if (beside != Beside::nobody)
      w.add(beside == Beside::hardware ? t : entitlement(Policy::guaranteed_burst_share, 7000), {trainer});
    w.run(40 * second);
    std::vector<Ns>& took = w.latencies(a);
    std::ranges::sort(took);
    return static_cast<double>(took[took.size() * 99 / 100]);
  };
  const double undisturbed = p99(Beside::nobody);
  return {p99(Beside::leases) / undisturbed, p99(Beside::hardware) / undisturbed};
}

// Returns the time from a change of share until a window of 100 ms has the new share within 2 points, in ms.
inline double change_ms() {
  World w;
  for (const uint32_t share : {2000, 3000, 5000})
    w.add(entitlement(Policy::fixed_share, share), {{.kernel = 200 * us}});
  w.run(2 * second);
  w.change(2, entitlement(Policy::fixed_share, 2000));
  w.change(0, entitlement(Policy::fixed_share, 5000));
  std::vector<Ns> charged;
  w.settle();
  for (int k = 0; k < 100; ++k) {
    charged.push_back(w.charged(0));
    w.run(10 * ms);
    w.settle();
  }
  for (size_t k = 10; k < charged.size(); ++k)
    if (std::abs(static_cast<double>(charged[k] - charged[k - 10]) / 1e6 - 50) <= 2)
      return 10.0 * static_cast<double>(k);
  return 1000;
}

}  // namespace carve::share
