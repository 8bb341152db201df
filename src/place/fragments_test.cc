#include "place/fragments.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "place/bucket.h"

namespace carve::place {
namespace {

RequestShape asking(unsigned devices, uint32_t share, uint32_t cpu, Models models = any_model) {
  RequestShape a;
  a.devices = static_cast<uint8_t>(devices);
  a.share = {share};
  a.cpu_milli = cpu;
  a.models = models;
  a.isolated = false;
  return a;
}

// Computes the paper's definition, type by type, in basis points * 2^30.
int64_t by_definition(const Fleet& fleet, uint32_t n, const WorkloadModel& workload) {
  int64_t sum = 0;
  for (const Type& m : workload) {
    int64_t total = 0;
    int64_t small = 0;
    unsigned serving = 0;
    for (const DeviceState& c : fleet.devices(n)) {
      total += c.free_share.basis_points;
      if (c.free_share >= m.shape.share)
        ++serving;
      else
        small += c.free_share.basis_points;
    }
    const bool runs = m.shape.devices != 0 && (m.shape.models >> fleet.node(n).model & 1) != 0 &&
                      m.shape.cpu_milli <= fleet.node(n).cpu_free && serving >= m.shape.devices;
    sum += m.weight * (runs ? small : total);
  }
  return sum;
}

struct Chance {
  std::mt19937 dice{3};
  WorkloadModel workload() {
    WorkloadModel w;
    for (int i = 0; i < 25; ++i) {
      const unsigned devices = std::array{0, 1, 1, 1, 1, 2, 4, 8}[dice() % 8];
      const uint32_t share = devices > 1 && dice() % 2 ? 10000 : dice() % 10 * 1000 + 1000;
      w.push_back({asking(devices, devices == 0 ? 0 : share, dice() % 6 * 4000,
                          dice() % 4 == 0 ? dice() % 3 + 1 : any_model),
                   static_cast<int64_t>(dice() % 1000) * (certain / 16384)});
    }
    return w;
  }
  void nodes(Fleet& fleet, int count) {
    const unsigned models[] = {*fleet.model("a"), *fleet.model("b")};
    for (int i = 0; i < count; ++i) {
      NodeState node;
      node.model = static_cast<uint8_t>(models[dice() % 2]);
      node.cpu_free = dice() % 33 * 1000;
      std::vector<DeviceState> devices(dice() % 8 + 1);
      for (DeviceState& c : devices) {
        c.usable = c.free = 16_GiB;
        c.free_share = {dice() % 3 == 0 ? 10000u : static_cast<uint32_t>(dice() % 101 * 100)};
      }
      fleet.add(node, devices);
    }
  }
};

TEST(Fragments, equal_the_papers_definition_if_no_request_needs_memory) {
  Chance chance;
  for (int round = 0; round < 40; ++round) {
    Fleet fleet;
    chance.nodes(fleet, 20);
    const WorkloadModel workload = chance.workload();
    Fragments fragments;
    fragments.build(fleet, workload);
    for (uint32_t n = 0; n < fleet.nodes(); ++n)
      ASSERT_EQ(fragments.fragment(fleet, n), by_definition(fleet, n, workload)) << round << ", node " << n;
  }
}

TEST(Fragments, change_by_the_gradient_that_a_step_reports) {
  Chance chance;
  int steps = 0;
  for (int round = 0; round < 40; ++round) {
    Fleet fleet;
    chance.nodes(fleet, 20);
    const WorkloadModel workload = chance.workload();
    Fragments fragments;
    fragments.build(fleet, workload);
    for (uint32_t n = 0; n < fleet.nodes(); ++n) {
      const RequestShape& shape = workload[chance.dice() % workload.size()].shape;
      const auto fit = fitting(fleet, n, shape);
      if (!fit) continue;
      const int64_t before = by_definition(fleet, n, workload);
      fragments.alternatives(fleet, n, shape, *fit, [&](const Fragments::Step& step) {
        fleet.take(shape, {n, step.devices.set, {}});
        EXPECT_EQ(step.gradient, before - by_definition(fleet, n, workload));
        fleet.give(shape, {n, step.devices.set, {}});
        ++steps;
      });
    }
  }
  EXPECT_GT(steps, 500);
}

TEST(Fragments, include_compute_without_memory_and_memory_without_compute) {
  Fleet fleet;
  NodeState node;
  node.model = static_cast<uint8_t>(*fleet.model("a"));
  node.cpu_free = 64'000;
  DeviceState whole;
  whole.usable = whole.free = 16_GiB;
  DeviceState no_memory = whole;
  no_memory.free = 1_GiB;
  DeviceState no_compute = whole;
  no_compute.free_share = {500};
  for (const DeviceState& c : {whole, no_memory, no_compute}) fleet.add(node, std::vector{c});
  RequestShape half = asking(1, 5000, 1000);
  half.memory = 8_GiB;
  Fragments fragments;
  fragments.build(fleet, {{half, certain}});
  EXPECT_EQ(fragments.fragment(fleet, 0), 0) << "all of the free capacity is useful";
  EXPECT_EQ(fragments.useful(fleet, 1), 0) << "none of the free capacity is useful";
  EXPECT_EQ(fragments.useful(fleet, 2), 0);
  EXPECT_GT(fragments.fragment(fleet, 1), certain * 5000);
  EXPECT_GT(fragments.fragment(fleet, 2), certain * 5000 / 2);
}

TEST(Bucket, is_the_rounded_value_of_the_logistic_function) {
  for (double milli = -8000; milli <= 8000; milli += 7.3) {
    const double exact = 100 / (1 + std::exp(-milli / 1000));
    if (std::abs(exact - std::round(exact)) < 1e-3) continue;  // Near a limit, exp() is too inexact.
    EXPECT_EQ(bucket(static_cast<int64_t>(milli * 10 * static_cast<double>(certain))), std::floor(exact))
        << milli;
  }
  EXPECT_EQ(bucket(0), 50);
  EXPECT_EQ(bucket(1), 50);
  EXPECT_EQ(bucket(-1), 49);
}

}  // namespace
}  // namespace carve::place
