#include "place/repack.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "place/rules.h"

namespace carve::place {
namespace {

void add(Engine& engine, unsigned nodes, unsigned cards) {
  for (unsigned i = 0; i < nodes; ++i) {
    NodeState node;
    node.model = static_cast<uint8_t>(*engine.fleet().model("A10"));
    node.cpu_free = 64'000;
    CardState card;
    card.usable = card.free = 16_GiB;
    engine.fleet().add(node, std::vector<CardState>(cards, card));
  }
}

Ask asking(uint32_t share, Bytes memory, unsigned cards = 1) {
  Ask a;
  a.cards = static_cast<uint8_t>(cards);
  a.share = {share};
  a.memory = memory;
  return a;
}

std::string written(const Fleet& fleet) {
  std::string out;
  for (uint32_t n = 0; n < fleet.nodes(); ++n)
    for (const CardState& c : fleet.cards(n))
      out += fmt::format("{} {} {} {};", c.free.count, c.free_share.basis_points, c.tenants, c.sick);
  return out;
}

// Four cards with a third taken on each: two can be emptied, with a move each; not a third one.
TEST(Repack, empties_as_many_cards_as_others_have_room_for_with_one_move_each) {
  Engine engine(Strategy::binpack);
  add(engine, 2, 2);
  const Kind third = engine.kind(asking(4000, 5_GiB));
  std::vector<Standing> standing;
  for (uint32_t n = 0; n < 2; ++n)
    for (unsigned card = 0; card < 2; ++card) {
      standing.push_back({third, {n, CardSet{1} << card, 5_GiB}});
      engine.take(third, standing.back().spot);
    }
  const std::string before = written(engine.fleet());
  for (const unsigned wanted : {1u, 2u, 4u}) {
    const Repack plan = repack(engine, standing, wanted);
    EXPECT_EQ(plan.emptied, std::min(wanted, 2u));
    EXPECT_EQ(plan.moves.size(), plan.emptied);
    EXPECT_EQ(plan.moved.count, plan.emptied * (5_GiB).count);
    EXPECT_EQ(plan.moved_share, plan.emptied * 4000u);
    EXPECT_EQ(written(engine.fleet()), before) << "a plan changes nothing";
  }
}

TEST(Repack, nobody_is_moved_who_cannot_be_or_for_nothing) {
  Engine engine(Strategy::binpack);
  add(engine, 2, 2);
  const Kind whole = engine.kind(asking(10000, 16_GiB));
  const Kind pair = engine.kind(asking(2000, 2_GiB, 2));
  std::vector<Standing> standing = {{whole, {0, 0b01, 16_GiB}}, {pair, {1, 0b11, 2_GiB}}};
  for (const Standing& s : standing) engine.take(s.kind, s.spot);
  EXPECT_EQ(repack(engine, standing, 4).emptied, 0u);
  const Kind stranger = engine.kind(asking(1000, 1_GiB));
  engine.take(stranger, {0, 0b10, 1_GiB});
  EXPECT_EQ(repack(engine, standing, 4).emptied, 0u) << "who was not told of is not moved";
}

TEST(Repack, whatever_stands_the_plan_can_be_carried_out_step_by_step) {
  std::mt19937 dice(4);
  unsigned emptied = 0;
  for (int round = 0; round < 60; ++round) {
    Engine engine(round % 2 == 0 ? Strategy::spread : Strategy::fgd);
    add(engine, 5, 4);
    if (round % 2 != 0) engine.expect({{asking(5000, 8_GiB), certain}});
    std::vector<Standing> standing;
    for (int i = 0; i < 30; ++i) {
      const Kind kind = engine.kind(
          asking(dice() % 5 * 1000 + 500, Bytes{uint64_t{dice() % 6 + 1} << 30}, dice() % 8 == 0 ? 2 : 1));
      if (const auto spot = engine.place(kind)) standing.push_back({kind, *spot});
    }
    const auto empty = [&] {
      unsigned count = 0;
      for (uint32_t n = 0; n < 5; ++n)
        for (const CardState& c : engine.fleet().cards(n)) count += c.tenants == 0;
      return count;
    };
    const std::string before = written(engine.fleet());
    const unsigned empty_before = empty();
    const Repack plan = repack(engine, standing, 3);
    ASSERT_EQ(written(engine.fleet()), before);
    for (const Move& m : plan.moves) {
      const Ask& ask = engine.ask(standing[m.who].kind);
      engine.release(standing[m.who].kind, m.from);
      const auto fit = fitting(engine.fleet(), m.to.node, ask);
      ASSERT_TRUE(fit && (*fit & m.to.cards) == m.to.cards) << "no room for a move of the plan";
      engine.take(standing[m.who].kind, m.to);
    }
    ASSERT_EQ(empty(), empty_before + plan.emptied);
    emptied += plan.emptied;
  }
  EXPECT_GT(emptied, 20u);
}

}  // namespace
}  // namespace carve::place
