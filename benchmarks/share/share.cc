// Measures shares in virtual time: the unmodified src/share runs over the simulated device's engine
// (tests/share). The results are exact and the same on every machine. share.py measures real processes under
// the real clock.
#include <fmt/format.h>

#include <string_view>

#include "scenarios.h"

using namespace carve;
using namespace carve::share;

namespace {

bool first = true;

void figure(std::string_view name, double value, std::string_view unit, double goal, std::string_view better,
            double native = -1) {
  fmt::print(
      "{}{{\"name\": \"share.virtual.{}\", \"value\": {:.5g}, \"unit\": \"{}\", \"goal\": {}, \"better\": "
      "\"{}\", "
      "\"native\": {}, \"spread\": null, \"where\": \"simulated, virtual time\"}}",
      first ? "[" : ",\n", name, value, unit, goal, better,
      native < 0 ? "null" : fmt::format("{:.5g}", native));
  first = false;
}

}  // namespace

int main() {
  const Judged fixed = judge(Policy::fixed_share, 4), guaranteed = judge(Policy::guaranteed_burst_share, 4);
  figure("fixed.worst", fixed.worst, "points", 1.0, "lower");
  figure("fixed.mean", fixed.mean, "points", 0.3, "lower");
  figure("fixed.long_of_bound", fixed.worst_of_bound, "of the bound", 1.0, "lower");
  figure("guaranteed.worst", guaranteed.worst, "points", 1.0, "lower");
  figure("guaranteed.mean", guaranteed.mean, "points", 0.3, "lower");
  figure("weight.worst", std::max(weight_error(6000, 2000), weight_error(9000, 1000)), "%", 5.0, "lower");
  figure("conserved", conserved(), "%", 98.0, "higher");
  figure("alone", alone(Policy::guaranteed_burst_share), "%", 99.5, "higher");
  figure("jain16", jain(16), "", 0.999, "higher");
  figure("sum_over_native_rr", sum_over_native(), "x", 1.02, "higher");
  figure("sum_over_native_rr.10ms", sum_over_native(200 * us), "x", 1.02, "higher");
  const struct {
    std::string_view name;
    Behaviour trainer;
    double goal;
  } trainers[] = {{"kernels_400us", {.kernel = 400 * us}, 1.10},
                  {"graphs_5ms", {.kernel = 500 * us, .nodes = 10}, 1.30},
                  {"graphs_5_50ms", {.kernel = 500 * us, .longest = 5 * ms, .nodes = 10}, 2.60}};
  for (const auto& [name, trainer, goal] : trainers) {
    const Latency l = latency(trainer);
    figure(fmt::format("latency.p99.{}", name), l.leased, "x alone", goal, "lower", l.native);
  }
  figure("change_ms", change_ms(), "ms", 150, "lower");
  fmt::print("]\n");
}
