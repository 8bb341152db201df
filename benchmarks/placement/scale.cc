// Measures how the cost of a decision grows with nodes, with request classes, and with devices on a node; and
// the cost of the first decision of a class, which scores every node. The cluster is synthetic and half full,
// with a mix of nodes as in large clusters (most nodes with the full number of devices, a third with two),
// and its slices end again. Takes about a minute in one thread.
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <ctime>
#include <fstream>
#include <functional>

#include "place/engine.h"

namespace {

using namespace carve;
using namespace carve::place;
// Returns this thread's processor time, which other work on a shared machine does not affect.
double seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

uint64_t mixed(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

class Cluster {
 public:
  Cluster(Strategy strategy, uint32_t nodes, unsigned devices, unsigned classes) : engine(strategy) {
    for (uint32_t n = 0; n < nodes; ++n) {
      const unsigned model = mixed(dice_) % 6;
      NodeState node;
      node.model = static_cast<uint8_t>(*engine.fleet().model(fmt::format("model{}", model)));
      node.cpu_free = 96'000;
      node.host_free = 512_GiB;
      DeviceState device;
      device.usable = device.free = 16_GiB;
      engine.fleet().add(node, std::vector<DeviceState>(model < 2 ? std::min(2u, devices) : devices, device));
    }
    WorkloadModel expected;
    for (unsigned k = 0; k < classes; ++k) {
      classes_.push_back(engine.request_class(request(k)));
      expected.push_back({engine.shape(classes_.back()), certain / classes});
    }
    if (engine.uses_workload_model()) engine.set_workload_model(expected);
    const uint64_t all = uint64_t{engine.fleet().devices()} * whole_device.basis_points;
    // Fills the cluster with one class: the scores of the others are not needed yet.
    while (engine.fleet().free_share() * 2 > all) arrive(classes_[0]);
  }

  // Returns a distinct request for each k: mostly parts of a device, some whole devices, a few on several
  // devices.
  RequestShape request(unsigned k) const {
    RequestShape a;
    a.isolated = false;
    a.cpu_milli = 1000 + k % 97 * 100 + k / 97;
    a.devices = static_cast<uint8_t>(k % 20 == 7 ? 2 : k % 40 == 13 ? 4 : 1);
    a.share = {k % 3 == 0 || a.devices > 1 ? 10000 : k % 9 * 1000 + 500};
    if (k % 10 == 4) a.models = Models{1} << k % 6;
    return a;
  }

  // Some classes are frequent and many are rare: half of all arrivals belong to a quarter of the classes.
  bool arrive() {
    return arrive(
        classes_[(mixed(dice_) % classes_.size()) * (mixed(dice_) % classes_.size()) / classes_.size()]);
  }
  bool arrive(RequestClass request_class) {
    const auto assignment = engine.place(request_class);
    if (assignment) standing_.emplace_back(request_class, *assignment);
    return assignment.has_value();
  }
  void leave() {
    std::swap(standing_[mixed(dice_) % standing_.size()], standing_.back());
    engine.release(standing_.back().first, standing_.back().second);
    standing_.pop_back();
  }

  // Measures pairs of an arrival and a departure.
  double decisions_per_second(int count) {
    for (int i = 0; i < count; ++i)  // Until every class has been requested.
      if (arrive()) leave();
    std::array<double, 5> speeds;  // The median, because other work shares the machine's caches.
    for (double& speed : speeds) {
      const double begin = seconds();
      for (int i = 0; i < count; ++i)
        if (arrive()) leave();
      speed = count / (seconds() - begin);
    }
    std::ranges::sort(speeds);
    return speeds[2];
  }

  Engine engine;

 private:
  uint64_t dice_ = 42;
  std::vector<RequestClass> classes_;
  std::vector<std::pair<RequestClass, Assignment>> standing_;
};

std::string rows;

void figure(std::string_view name, double value, std::string_view unit, std::string_view goal,
            std::string_view better) {
  rows += fmt::format(
      R"({}{{"name": "placement.{}", "value": {:.4g}, "unit": "{}", "goal": {}, "better": "{}", "native": null, "spread": null, "where": "synthetic cluster"}})",
      rows.empty() ? "" : ",\n ", name, value, unit, goal, better);
}

// Returns CSV rows for each strategy: the cost of an arrival and a departure against the number that grows.
std::string growth(std::string_view title, std::initializer_list<unsigned> steps,
                   const std::function<Cluster(Strategy, unsigned)>& made, std::string_view name) {
  std::string out;
  for (const Strategy strategy : {Strategy::binpack, Strategy::fgd, Strategy::fgd_scarcity}) {
    for (const unsigned step : steps) {
      Cluster cluster = made(strategy, step);
      const double speed = cluster.decisions_per_second(4'000);
      out += fmt::format("\"{}\",{},{},{:.3f}\n", title, text(strategy), step, 1e6 / speed);
      if (strategy != Strategy::fgd_scarcity) continue;
      const bool most = name == "nodes" && step == 100'000;
      figure(fmt::format("{}.{}.fgd-scarcity", name, step), speed, "1/s", most ? "10000" : "null", "higher");
      if (name == "nodes")
        figure(fmt::format("nodes.{}.bytes", step), static_cast<double>(cluster.engine.bytes_per_node()), "B",
               most ? "1024" : "null", "lower");
    }
  }
  return out;
}

}  // namespace

// bench_placement [FILE.csv]: prints the figures and writes how they grow to a CSV file that tools/plot
// draws.
int main(int argc, char** argv) {
  std::string curves;
  curves += growth(
      "nodes (6 devices, 150 request classes)", {1'000, 3'000, 10'000, 30'000, 100'000},
      [](Strategy s, unsigned n) { return Cluster(s, n, 6, 150); }, "nodes");
  curves += growth(
      "request classes (5,000 nodes, 8 devices)", {15, 50, 150, 500},
      [](Strategy s, unsigned n) { return Cluster(s, 5'000, 8, n); }, "kinds");
  curves += growth(
      "devices of a node (5,000 nodes, 150 request classes)", {2, 4, 8, 16, 32},
      [](Strategy s, unsigned n) { return Cluster(s, 5'000, n, 150); }, "devices");
  if (argc > 1) std::ofstream(argv[1]) << "panel,strategy,number,microseconds\n" << curves;

  // Measures the first decision for 500 classes that were never requested before.
  Cluster cluster(Strategy::fgd_scarcity, 5'000, 8, 150);
  std::vector<double> cold;
  for (unsigned k = 1000; k < 1500; ++k) {
    const RequestClass request_class = cluster.engine.request_class(cluster.request(k));
    const double begin = seconds();
    (void)cluster.engine.find(request_class);
    cold.push_back((seconds() - begin) * 1e3);
  }
  std::ranges::sort(cold);
  figure("cold.p50", cold[250], "ms", "null", "lower");
  figure("cold.p99", cold[495], "ms", "2", "lower");
  fmt::print("[{}]\n", rows);
}
