// The placements of the same dozen requests under each strategy, as tables that can be checked by hand. There
// are three nodes: a with 2 devices, b and c with 4; every device has 16 GiB. A row has the slice that was
// placed or ended, its position, and the free compute of every device, in tenths.
#include <gtest/gtest.h>

#include <bit>
#include <map>

#include "place/engine.h"

namespace carve::place {
namespace {

RequestShape asking(unsigned devices, unsigned tenths, Bytes memory) {
  RequestShape a;
  a.devices = static_cast<uint8_t>(devices);
  a.share = {tenths * 1000};
  a.memory = memory;
  return a;
}

struct Step {
  const char* who;
  RequestShape shape;
  bool leaves = false;
};
const Step steps[] = {
    {"half", asking(1, 5, 4_GiB)},   {"some", asking(1, 3, 8_GiB)},
    {"pair", asking(2, 10, 16_GiB)}, {"most", asking(1, 7, 2_GiB)},
    {"half2", asking(1, 5, 4_GiB)},  {"half", asking(1, 5, 4_GiB), true},
    {"quad", asking(4, 10, 16_GiB)}, {"some2", asking(1, 3, 8_GiB)},
    {"heavy", asking(1, 1, 12_GiB)}, {"pair", asking(2, 10, 16_GiB), true},
    {"one", asking(1, 10, 16_GiB)},  {"trio", asking(3, 5, 8_GiB)},
};

std::string table(Strategy strategy) {
  Engine engine(strategy);
  Fleet& fleet = engine.fleet();
  for (const unsigned devices : {2u, 4u, 4u}) {
    NodeState node;
    node.model = static_cast<uint8_t>(*fleet.model("A10"));
    node.cpu_free = 64'000;
    DeviceState device;
    device.usable = device.free = 16_GiB;
    fleet.add(node, std::vector<DeviceState>(devices, device));
  }
  engine.set_workload_model({{asking(1, 5, 4_GiB), certain / 10 * 4},
                             {asking(1, 3, 8_GiB), certain / 10 * 3},
                             {asking(1, 10, 16_GiB), certain / 10 * 2},
                             {asking(4, 10, 16_GiB), certain / 10}});
  std::map<std::string, Assignment> standing;
  std::string out;
  for (const Step& step : steps) {
    std::string where = "nowhere";
    if (step.leaves) {
      const auto gone = standing.find(step.who);
      if (gone != standing.end())
        engine.release(engine.request_class(step.shape), gone->second), standing.erase(gone);
      where = "leaves";
    } else if (const auto assignment = engine.place(engine.request_class(step.shape))) {
      standing[step.who] = *assignment;
      where = std::string(1, static_cast<char>('a' + assignment->node)) + " ";
      for (DeviceSet s = assignment->devices; s != 0; s &= s - 1)
        where += std::to_string(std::countr_zero(s));
    }
    out += fmt::format("{:<6}{:<8}", step.who, where);
    for (uint32_t n = 0; n < fleet.nodes(); ++n) {
      out += " |";
      for (const DeviceState& c : fleet.devices(n))
        out += fmt::format(" {:>2}", c.free_share.basis_points / 1000);
    }
    out += "\n";
  }
  return "\n" + out;
}

TEST(Golden, binpack_places_as_in_the_table) {
  EXPECT_EQ(table(Strategy::binpack), R"(
half  a 0      |  5 10 | 10 10 10 10 | 10 10 10 10
some  a 0      |  2 10 | 10 10 10 10 | 10 10 10 10
pair  b 01     |  2 10 |  0  0 10 10 | 10 10 10 10
most  b 2      |  2 10 |  0  0  3 10 | 10 10 10 10
half2 b 3      |  2 10 |  0  0  3  5 | 10 10 10 10
half  leaves   |  7 10 |  0  0  3  5 | 10 10 10 10
quad  c 0123   |  7 10 |  0  0  3  5 |  0  0  0  0
some2 b 2      |  7 10 |  0  0  0  5 |  0  0  0  0
heavy b 3      |  7 10 |  0  0  0  4 |  0  0  0  0
pair  leaves   |  7 10 | 10 10  0  4 |  0  0  0  0
one   b 0      |  7 10 |  0 10  0  4 |  0  0  0  0
trio  nowhere  |  7 10 |  0 10  0  4 |  0  0  0  0
)");
}
TEST(Golden, spread_places_as_in_the_table) {
  EXPECT_EQ(table(Strategy::spread), R"(
half  a 0      |  5 10 | 10 10 10 10 | 10 10 10 10
some  b 0      |  5 10 |  7 10 10 10 | 10 10 10 10
pair  c 01     |  5 10 |  7 10 10 10 |  0  0 10 10
most  b 1      |  5 10 |  7  3 10 10 |  0  0 10 10
half2 a 1      |  5  5 |  7  3 10 10 |  0  0 10 10
half  leaves   | 10  5 |  7  3 10 10 |  0  0 10 10
quad  nowhere  | 10  5 |  7  3 10 10 |  0  0 10 10
some2 a 0      |  7  5 |  7  3 10 10 |  0  0 10 10
heavy b 2      |  7  5 |  7  3  9 10 |  0  0 10 10
pair  leaves   |  7  5 |  7  3  9 10 | 10 10 10 10
one   c 0      |  7  5 |  7  3  9 10 |  0 10 10 10
trio  c 123    |  7  5 |  7  3  9 10 |  0  5  5  5
)");
}
TEST(Golden, first_fit_places_as_in_the_table) {
  EXPECT_EQ(table(Strategy::first_fit), R"(
half  a 0      |  5 10 | 10 10 10 10 | 10 10 10 10
some  a 0      |  2 10 | 10 10 10 10 | 10 10 10 10
pair  b 01     |  2 10 |  0  0 10 10 | 10 10 10 10
most  a 1      |  2  3 |  0  0 10 10 | 10 10 10 10
half2 b 2      |  2  3 |  0  0  5 10 | 10 10 10 10
half  leaves   |  7  3 |  0  0  5 10 | 10 10 10 10
quad  c 0123   |  7  3 |  0  0  5 10 |  0  0  0  0
some2 a 0      |  4  3 |  0  0  5 10 |  0  0  0  0
heavy a 1      |  4  2 |  0  0  5 10 |  0  0  0  0
pair  leaves   |  4  2 | 10 10  5 10 |  0  0  0  0
one   b 0      |  4  2 |  0 10  5 10 |  0  0  0  0
trio  b 123    |  4  2 |  0  5  0  5 |  0  0  0  0
)");
}
TEST(Golden, best_fit_places_as_in_the_table) {
  EXPECT_EQ(table(Strategy::best_fit), R"(
half  a 0      |  5 10 | 10 10 10 10 | 10 10 10 10
some  a 0      |  2 10 | 10 10 10 10 | 10 10 10 10
pair  b 01     |  2 10 |  0  0 10 10 | 10 10 10 10
most  a 1      |  2  3 |  0  0 10 10 | 10 10 10 10
half2 b 2      |  2  3 |  0  0  5 10 | 10 10 10 10
half  leaves   |  7  3 |  0  0  5 10 | 10 10 10 10
quad  c 0123   |  7  3 |  0  0  5 10 |  0  0  0  0
some2 a 1      |  7  0 |  0  0  5 10 |  0  0  0  0
heavy b 2      |  7  0 |  0  0  4 10 |  0  0  0  0
pair  leaves   |  7  0 | 10 10  4 10 |  0  0  0  0
one   b 0      |  7  0 |  0 10  4 10 |  0  0  0  0
trio  nowhere  |  7  0 |  0 10  4 10 |  0  0  0  0
)");
}
TEST(Golden, fgd_places_as_in_the_table) {
  EXPECT_EQ(table(Strategy::fgd), R"(
half  a 0      |  5 10 | 10 10 10 10 | 10 10 10 10
some  a 0      |  2 10 | 10 10 10 10 | 10 10 10 10
pair  b 01     |  2 10 |  0  0 10 10 | 10 10 10 10
most  a 1      |  2  3 |  0  0 10 10 | 10 10 10 10
half2 b 2      |  2  3 |  0  0  5 10 | 10 10 10 10
half  leaves   |  7  3 |  0  0  5 10 | 10 10 10 10
quad  c 0123   |  7  3 |  0  0  5 10 |  0  0  0  0
some2 a 1      |  7  0 |  0  0  5 10 |  0  0  0  0
heavy b 2      |  7  0 |  0  0  4 10 |  0  0  0  0
pair  leaves   |  7  0 | 10 10  4 10 |  0  0  0  0
one   b 0      |  7  0 |  0 10  4 10 |  0  0  0  0
trio  nowhere  |  7  0 |  0 10  4 10 |  0  0  0  0
)");
}
TEST(Golden, fgd_scarcity_places_as_in_the_table) {
  EXPECT_EQ(table(Strategy::fgd_scarcity), R"(
half  a 0      |  5 10 | 10 10 10 10 | 10 10 10 10
some  a 0      |  2 10 | 10 10 10 10 | 10 10 10 10
pair  b 01     |  2 10 |  0  0 10 10 | 10 10 10 10
most  a 1      |  2  3 |  0  0 10 10 | 10 10 10 10
half2 b 2      |  2  3 |  0  0  5 10 | 10 10 10 10
half  leaves   |  7  3 |  0  0  5 10 | 10 10 10 10
quad  c 0123   |  7  3 |  0  0  5 10 |  0  0  0  0
some2 a 1      |  7  0 |  0  0  5 10 |  0  0  0  0
heavy b 2      |  7  0 |  0  0  4 10 |  0  0  0  0
pair  leaves   |  7  0 | 10 10  4 10 |  0  0  0  0
one   b 0      |  7  0 |  0 10  4 10 |  0  0  0  0
trio  nowhere  |  7  0 |  0 10  4 10 |  0  0  0  0
)");
}
TEST(Golden, lookahead_places_as_in_the_table) {
  EXPECT_EQ(table(Strategy::lookahead), R"(
half  a 0      |  5 10 | 10 10 10 10 | 10 10 10 10
some  a 0      |  2 10 | 10 10 10 10 | 10 10 10 10
pair  b 01     |  2 10 |  0  0 10 10 | 10 10 10 10
most  a 1      |  2  3 |  0  0 10 10 | 10 10 10 10
half2 b 2      |  2  3 |  0  0  5 10 | 10 10 10 10
half  leaves   |  7  3 |  0  0  5 10 | 10 10 10 10
quad  c 0123   |  7  3 |  0  0  5 10 |  0  0  0  0
some2 a 1      |  7  0 |  0  0  5 10 |  0  0  0  0
heavy b 3      |  7  0 |  0  0  5  9 |  0  0  0  0
pair  leaves   |  7  0 | 10 10  5  9 |  0  0  0  0
one   b 0      |  7  0 |  0 10  5  9 |  0  0  0  0
trio  nowhere  |  7  0 |  0 10  5  9 |  0  0  0  0
)");
}

}  // namespace
}  // namespace carve::place
