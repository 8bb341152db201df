#include "place/consolidation.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "place/rules.h"

namespace carve::place {
namespace {

void add(Engine& engine, unsigned nodes, unsigned devices) {
  for (unsigned i = 0; i < nodes; ++i) {
    NodeState node;
    node.model = static_cast<uint8_t>(*engine.fleet().model("A10"));
    node.cpu_free = 64'000;
    DeviceState device;
    device.usable = device.free = 16_GiB;
    engine.fleet().add(node, std::vector<DeviceState>(devices, device));
  }
}

RequestShape asking(uint32_t share, Bytes memory, unsigned devices = 1) {
  RequestShape a;
  a.devices = static_cast<uint8_t>(devices);
  a.share = {share};
  a.memory = memory;
  return a;
}

std::string written(const Fleet& fleet) {
  std::string out;
  for (uint32_t n = 0; n < fleet.nodes(); ++n)
    for (const DeviceState& c : fleet.devices(n))
      out += fmt::format("{} {} {} {} {};", c.free.count, c.free_share.basis_points, c.slices, c.exclusive,
                         c.sick);
  return out;
}

// Four devices, a third of each of which is used. Two can be emptied with one move each, a third one cannot.
TEST(ConsolidationPlan, empties_as_many_devices_as_possible_with_one_move_each) {
  Engine engine(Strategy::binpack);
  add(engine, 2, 2);
  const RequestClass third = engine.request_class(asking(4000, 5_GiB));
  std::vector<PlacedRequest> standing;
  for (uint32_t n = 0; n < 2; ++n)
    for (unsigned device = 0; device < 2; ++device) {
      standing.push_back({third, {n, DeviceSet{1} << device, 5_GiB}});
      engine.take(third, standing.back().assignment);
    }
  const std::string before = written(engine.fleet());
  for (const unsigned wanted : {1u, 2u, 4u}) {
    const ConsolidationPlan plan = plan_consolidation(engine, standing, wanted);
    const size_t emptied = plan.emptied.size();
    EXPECT_EQ(emptied, std::min(wanted, 2u));
    EXPECT_EQ(plan.moves.size(), emptied);
    EXPECT_EQ(plan.moved.count, emptied * (5_GiB).count);
    EXPECT_EQ(plan.moved_share, emptied * 4000u);
    EXPECT_EQ(written(engine.fleet()), before) << "a plan changes nothing";
  }
}

TEST(ConsolidationPlan, moves_no_slice_that_cannot_move_or_whose_move_gains_nothing) {
  Engine engine(Strategy::binpack);
  add(engine, 2, 2);
  const RequestClass whole = engine.request_class(asking(10000, 16_GiB));
  const RequestClass pair = engine.request_class(asking(2000, 2_GiB, 2));
  std::vector<PlacedRequest> standing = {{whole, {0, 0b01, 16_GiB}}, {pair, {1, 0b11, 2_GiB}}};
  for (const PlacedRequest& s : standing) engine.take(s.request_class, s.assignment);
  EXPECT_EQ(plan_consolidation(engine, standing, 4).emptied.size(), 0u);
  const RequestClass unlisted = engine.request_class(asking(1000, 1_GiB));
  engine.take(unlisted, {0, 0b10, 1_GiB});
  EXPECT_EQ(plan_consolidation(engine, standing, 4).emptied.size(), 0u)
      << "a slice that was not passed to the planner is not moved";
}

// Two pairs that use 40 % of two devices each. One pair moves to the other's devices, which leaves two
// devices empty.
TEST(ConsolidationPlan, moves_a_slice_of_several_devices_to_several_others) {
  for (const Strategy strategy : {Strategy::binpack, Strategy::spread}) {
    Engine engine(strategy);
    add(engine, 2, 4);
    const RequestClass pair = engine.request_class(asking(4000, 5_GiB, 2));
    const std::vector<PlacedRequest> standing = {{pair, {0, 0b0011, 5_GiB}}, {pair, {1, 0b0110, 5_GiB}}};
    for (const PlacedRequest& s : standing) engine.take(s.request_class, s.assignment);
    const ConsolidationPlan plan = plan_consolidation(engine, standing, 1);
    ASSERT_EQ(plan.moves.size(), 1u) << text(strategy);
    EXPECT_EQ(plan.moves[0].to, (Assignment{1, 0b0110, 5_GiB}));
    EXPECT_EQ(plan.emptied, (std::vector<ConsolidationPlan::Emptied>{{0, 0}, {0, 1}}));
    EXPECT_EQ(exchanged(plan.moves[0]), (std::vector<std::pair<unsigned, unsigned>>{{0, 1}, {1, 2}}));
    EXPECT_EQ(plan.moved, 10_GiB);
    EXPECT_EQ(plan.moved_share, 8000u);
  }
}

// A pair is on devices 0 and 1, and two other slices on 1 and on 2. The pair leaves device 0 for device 2 and
// keeps device 1.
TEST(ConsolidationPlan, copies_only_the_parts_on_exchanged_devices) {
  Engine engine(Strategy::binpack);
  add(engine, 1, 3);
  const RequestClass pair = engine.request_class(asking(4000, 5_GiB, 2));
  const RequestClass one = engine.request_class(asking(5000, 8_GiB));
  const std::vector<PlacedRequest> standing = {
      {pair, {0, 0b011, 5_GiB}}, {one, {0, 0b010, 8_GiB}}, {one, {0, 0b100, 8_GiB}}};
  for (const PlacedRequest& s : standing) engine.take(s.request_class, s.assignment);
  const ConsolidationPlan plan = plan_consolidation(engine, standing, 3);
  ASSERT_EQ(plan.moves.size(), 1u);
  EXPECT_EQ(plan.moves[0].to.devices, DeviceSet{0b110});
  EXPECT_EQ(exchanged(plan.moves[0]), (std::vector<std::pair<unsigned, unsigned>>{{0, 2}}));
  EXPECT_EQ(plan.emptied, (std::vector<ConsolidationPlan::Emptied>{{0, 0}}));
  EXPECT_EQ(plan.moved, 5_GiB);
}

// Fleets of two models under every strategy, with slices of one to three devices, exclusive ones, replicas,
// slices bound to a model, and slices that are not passed to the planner.
TEST(ConsolidationPlan, can_always_be_carried_out_and_empties_the_listed_devices) {
  constexpr Strategy all[] = {Strategy::binpack,  Strategy::spread, Strategy::first_fit,
                              Strategy::best_fit, Strategy::fgd,    Strategy::fgd_scarcity,
                              Strategy::lookahead};
  std::mt19937 dice(4);
  unsigned emptied = 0, of_several = 0, kept_one = 0;
  for (int round = 0; round < 210; ++round) {
    Engine engine(all[round % 7]);
    add(engine, 5, 4);
    (void)engine.fleet().model("T4");
    NodeState other;
    other.model = static_cast<uint8_t>(*engine.fleet().known_model("T4"));
    other.cpu_free = 64'000;
    DeviceState device;
    device.usable = device.free = 24_GiB;
    engine.fleet().add(other, std::vector<DeviceState>(3, device));
    engine.set_workload_model({{asking(5000, 8_GiB), certain / 2}, {asking(3000, 2_GiB, 2), certain / 2}});
    std::vector<PlacedRequest> standing;
    for (int i = 0; i < 34; ++i) {
      RequestShape shape = asking(dice() % 5 * 1000 + 500, Bytes{uint64_t{dice() % 6 + 1} << 30},
                                  dice() % 3 == 0 ? dice() % 2 + 2 : 1);
      shape.exclusive = dice() % 16 == 0;
      shape.cpu_milli = dice() % 8 * 1000;
      if (dice() % 6 == 0) shape.models = Models{1} << dice() % 2;
      const RequestClass request_class = engine.request_class(shape);
      const Application app = engine.application(dice() % 4 == 0 ? "web" : "");
      if (const auto assignment = engine.place(request_class, app))
        if (dice() % 24 != 0) standing.push_back({request_class, *assignment, app});
    }
    for (size_t i = standing.size(); i-- > 0;)  // Some slices end, which leaves free space.
      if (dice() % 3 == 0) {
        engine.release(standing[i].request_class, standing[i].assignment, standing[i].application);
        standing.erase(standing.begin() + static_cast<std::ptrdiff_t>(i));
      }
    const auto occupied = [&] {
      std::vector<ConsolidationPlan::Emptied> out;
      for (uint32_t n = 0; n < engine.fleet().nodes(); ++n)
        for (unsigned c = 0; c < engine.fleet().devices(n).size(); ++c)
          if (engine.fleet().devices(n)[c].slices != 0) out.push_back({n, c});
      return out;
    };
    const std::string before = written(engine.fleet());
    auto expected = occupied();
    const unsigned wanted = dice() % 4 + 1;
    const ConsolidationPlan plan = plan_consolidation(engine, standing, wanted);
    ASSERT_EQ(written(engine.fleet()), before) << "a plan changes nothing";
    ASSERT_EQ(plan_consolidation(engine, standing, wanted).emptied, plan.emptied)
        << "the plan is deterministic";

    std::vector<bool> moved(standing.size());
    Bytes carried;
    for (const Move& m : plan.moves) {
      const PlacedRequest& s = standing[m.who];
      ASSERT_FALSE(moved[m.who]) << "no slice moves twice";
      moved[m.who] = true;
      ASSERT_EQ(m.from, s.assignment);
      engine.release(s.request_class, m.from, s.application);
      const auto fit = fitting(engine.fleet(), m.to.node, engine.shape(s.request_class));
      ASSERT_TRUE(fit && (fit->any & m.to.devices) == m.to.devices) << "a move of the plan does not fit";
      ASSERT_EQ(std::popcount(m.to.devices), engine.shape(s.request_class).devices);
      engine.take(s.request_class, m.to, s.application);
      carried.count += m.from.memory.count * exchanged(m).size();
      of_several += engine.shape(s.request_class).devices > 1;
      kept_one += exchanged(m).size() < engine.shape(s.request_class).devices;
    }
    EXPECT_EQ(carried, plan.moved);
    for (const ConsolidationPlan::Emptied& e : plan.emptied)
      ASSERT_EQ(std::erase(expected, e), 1u) << "the device was empty before";
    ASSERT_EQ(occupied(), expected) << "exactly the devices of the plan were emptied";
    emptied += plan.emptied.size();
  }
  EXPECT_GT(emptied, 150u);
  EXPECT_GT(of_several, 50u);
  EXPECT_GT(kept_one, 10u);
}

}  // namespace
}  // namespace carve::place
