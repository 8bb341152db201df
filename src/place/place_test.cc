#include "place/place.h"

#include <gmock/gmock.h>

#include <random>

namespace carve::place {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Card card(unsigned index, Bytes usable, Bytes free) {
  Card c;
  c.device.index = index;
  c.device.uuid.bytes[0] = static_cast<uint8_t>(index + 1);
  c.device.native = usable;
  c.free = free;
  c.tenants = free < usable ? 1 : 0;
  c.isolated = c.tenants;
  return c;
}

Request asking(Bytes memory, unsigned devices = 1) {
  Request r;
  r.memory = PerDevice{memory};
  r.devices = devices;
  return r;
}

// Places one request after the other on a machine of `cards`, as the agent does.
std::vector<size_t> land(std::vector<Card> cards, Strategy policy, std::vector<Bytes> sizes) {
  std::vector<size_t> where;
  for (const Bytes size : sizes) {
    const Answer answer = place(cards, asking(size), policy);
    if (!answer.placement) {
      where.push_back(SIZE_MAX);
      continue;
    }
    const size_t i = answer.placement->cards[0];
    cards[i].free = minus(cards[i].free, size);
    cards[i].tenants++;
    cards[i].isolated++;
    where.push_back(i);
  }
  return where;
}

TEST(Place, binpack_fills_one_card_before_the_next_and_spread_does_not) {
  const std::vector<Card> two = {card(0, 15_GiB, 15_GiB), card(1, 15_GiB, 15_GiB)};
  EXPECT_THAT(land(two, Strategy::binpack, {2_GiB, 3_GiB}), ElementsAre(0, 0));
  EXPECT_THAT(land(two, Strategy::spread, {2_GiB, 3_GiB}), ElementsAre(0, 1));
  EXPECT_THAT(land(two, Strategy::binpack, {10_GiB, 10_GiB, 5_GiB, 5_GiB, 1_GiB}),
              ElementsAre(0, 1, 0, 1, SIZE_MAX));
  EXPECT_THAT(land(two, Strategy::spread, {2_GiB, 3_GiB, 1_GiB, 1_GiB}), ElementsAre(0, 1, 0, 0));
}

TEST(Place, binpack_takes_the_fullest_card_that_still_fits) {
  const std::vector<Card> cards = {card(0, 10_GiB, 8_GiB), card(1, 10_GiB, 1_GiB), card(2, 10_GiB, 4_GiB)};
  EXPECT_THAT(place(cards, asking(3_GiB), Strategy::binpack).placement->cards, ElementsAre(2));
  EXPECT_THAT(place(cards, asking(3_GiB), Strategy::spread).placement->cards, ElementsAre(0));
  EXPECT_THAT(place(cards, asking(3_GiB, 2), Strategy::binpack).placement->cards, ElementsAre(0, 2));
}

TEST(Place, several_cards_are_the_best_connected_where_that_is_known) {
  std::vector<Card> cards;
  for (unsigned i = 0; i < 4; ++i) cards.push_back(card(i, 10_GiB, 10_GiB));
  cards[1] = card(1, 10_GiB, 8_GiB);  // The fullest, which binpack would begin with.
  const Wire wires[] = {{0, 1, Link::socket}, {0, 2, Link::socket}, {0, 3, Link::nvlink},
                        {1, 2, Link::bridge}, {1, 3, Link::socket}, {2, 3, Link::socket}};
  const Topology links = *Topology::of(4, wires);
  EXPECT_THAT(place(cards, asking(1_GiB, 2), Strategy::binpack).placement->cards, ElementsAre(0, 1));
  const auto pair = place(cards, asking(1_GiB, 2), Strategy::binpack, {}, &links).placement;
  EXPECT_THAT(pair->cards, ElementsAre(0, 3));
  EXPECT_EQ(pair->connected, Link::nvlink);
  cards[0].trouble = "lost";
  const auto next = place(cards, asking(1_GiB, 2), Strategy::binpack, {}, &links).placement;
  EXPECT_THAT(next->cards, ElementsAre(1, 2));
  EXPECT_EQ(next->connected, Link::bridge);
  EXPECT_FALSE(place(cards, asking(1_GiB), Strategy::binpack, {}, &links).placement->connected);
}

TEST(Place, each_rule_gives_its_reason) {
  struct Row {
    const char* reason;
    void (*spoil)(Card&, Request&);
  };
  const Row rows[] = {
      {"names GPU-63", [](Card&, Request& r) { r.device = Uuid{{99}}; }},
      {"lost", [](Card& c, Request&) { c.trouble = "lost from the bus"; }},
      {"usable at all", [](Card&, Request& r) { r.memory = PerDevice{11_GiB}; }},
      {"that one context takes", [](Card& c, Request&) { c.context = 5_GiB; }},
      {"holds the whole device", [](Card& c, Request&) { c.exclusive = true; }},
      {"wants it alone", [](Card& c, Request& r) { c.tenants = 2, r.exclusive = true, r.memory = {}; }},
      {"16 isolated tenants", [](Card& c, Request&) { c.isolated = 16; }},
      {"4 GiB needed, 3 GiB free", [](Card& c, Request&) { c.free = 3_GiB; }},
      {"30% of its compute needed, 20% free",
       [](Card& c, Request& r) { c.free_share = {2000}, r.share = {3000}; }},
  };
  for (const Row& row : rows) {
    std::vector<Card> cards = {card(0, 10_GiB, 10_GiB)};
    Request request = asking(4_GiB);
    ASSERT_TRUE(place(cards, request, Strategy::binpack).placement);
    row.spoil(cards[0], request);
    const Answer answer = place(cards, request, Strategy::binpack);
    EXPECT_FALSE(answer.placement) << row.reason;
    EXPECT_THAT(answer.verdicts[0].sentence, HasSubstr(row.reason));
    EXPECT_THAT(answer.summary, HasSubstr(row.reason));
  }
}

TEST(Place, only_where_managed_memory_migrates_may_it_exceed_the_device) {
  Request r = asking(4_GiB);
  r.spill = 2_GiB;
  std::vector<Card> cards = {card(0, 22_GiB, 22_GiB), card(1, 22_GiB, 10_GiB)};
  EXPECT_THAT(place(cards, r, Strategy::binpack).summary,
              HasSubstr("devices 0, 1: its driver cannot move managed"));
  cards[0].device.migrates = true;
  EXPECT_THAT(place(cards, r, Strategy::binpack).placement->cards, ElementsAre(0));
  r.spill = {};
  EXPECT_THAT(place(cards, r, Strategy::binpack).placement->cards, ElementsAre(1));
}

TEST(Place, memory_and_compute_must_be_free_on_the_same_card) {
  std::vector<Card> cards = {card(0, 10_GiB, 10_GiB), card(1, 10_GiB, 1_GiB)};
  cards[0].free_share = {1000};
  Request request = asking(2_GiB);
  request.share = {5000};
  EXPECT_FALSE(place(cards, request, Strategy::binpack).placement);
  request.share = {};
  EXPECT_TRUE(place(cards, request, Strategy::binpack).placement);
}

TEST(Place, a_card_without_isolation_takes_more_than_sixteen_tenants) {
  std::vector<Card> cards = {card(0, 10_GiB, 10_GiB)};
  cards[0].isolated = 16;
  Request request = asking(1_GiB);
  request.isolation = Isolation::none;
  EXPECT_TRUE(place(cards, request, Strategy::binpack).placement);
}

TEST(Place, equal_reasons_are_told_once) {
  const std::vector<Card> cards = {card(0, 4_GiB, 1_GiB), card(1, 4_GiB, 1_GiB), card(2, 4_GiB, 2_GiB)};
  EXPECT_EQ(
      place(cards, asking(3_GiB), Strategy::binpack).summary,
      "devices 0, 1: 3 GiB needed, 1 GiB free; device 2: 3 GiB needed, 2 GiB free; the largest free piece "
      "is 2 GiB: with 1 GiB less it would fit");
  EXPECT_EQ(
      place(cards, asking(2_GiB, 2), Strategy::binpack).summary,
      "2 devices are needed, 1 of 3 could serve; devices 0, 1: 2 GiB needed, 1 GiB free; the largest free "
      "piece is 1 GiB: with 1 GiB less on each card it would fit");
  EXPECT_EQ(place({}, asking(2_GiB), Strategy::binpack).summary, "this machine has no devices");
}

// What people ask most, in the words that they get.
TEST(Place, a_refusal_says_what_each_card_lacks_and_what_would_fit) {
  Request ten_percent = asking(20_GiB);
  ten_percent.share = {1000};
  std::vector<Card> much_memory = {card(0, 48_GiB, 48_GiB)};
  much_memory[0].free_share = {500};
  std::vector<Card> crowded = {card(0, 16_GiB, 8_GiB)};
  crowded[0].isolated = crowded[0].tenants = 16;
  const std::vector<Card> unequal = {card(0, 24_GiB, 20_GiB), card(1, 16_GiB, 5_GiB)};
  const std::vector<Card> halves = {card(0, 15_GiB, 8_GiB), card(1, 15_GiB, 8_GiB)};
  const std::vector<Resident> residents = {{"a", {0}, 7_GiB, {}}, {"b", {1}, 7_GiB, {}}};
  const struct {
    std::span<const Card> cards;
    Request request;
    std::span<const Resident> residents;
    const char* summary;
  } rows[] = {
      {much_memory,
       ten_percent,
       {},
       "device 0: 10% of its compute needed, 5% free; with at most 5% of the compute it would fit"},
      {crowded, asking(128_MiB), {}, "device 0: it has 16 isolated tenants, the most there can be"},
      {unequal,
       asking(8_GiB, 2),
       {},
       "2 devices are needed, 1 of 2 could serve; device 1: 8 GiB needed, 5 GiB free; the largest free piece "
       "is "
       "5 GiB: with 3 GiB less on each card it would fit"},
      {halves, asking(12_GiB), residents,
       "devices 0, 1: 12 GiB needed, 8 GiB free; the largest free piece is 8 GiB: with 4 GiB less it would "
       "fit; "
       "moving 'a' (7 GiB) from device 0 to device 1 would make room"},
      {halves, asking(16_GiB), residents,
       "devices 0, 1: 16 GiB needed, and only 15 GiB of it are usable at all; "
       "the largest free piece is 8 GiB: with 8 GiB less it would fit"},
  };
  for (const auto& row : rows)
    EXPECT_EQ(place(row.cards, row.request, Strategy::binpack, row.residents).summary, row.summary);
}

TEST(Place, parts_of_unequal_cards_are_equal) {
  const std::vector<Card> cards = {card(0, 10_GiB, 10_GiB), card(1, 20_GiB, 20_GiB)};
  Request half = asking(1_GiB, 2);
  half.memory = OfUsable{{5000}};
  EXPECT_EQ(place(cards, half, Strategy::spread).placement->memory, 5_GiB);
}

TEST(Place, whatever_happens_no_card_is_given_more_than_it_has_and_no_card_twice) {
  std::mt19937 dice(20);
  for (int round = 0; round < 2000; ++round) {
    std::vector<Card> cards;
    for (unsigned i = 0, n = dice() % 8; i < n; ++i) {
      const Bytes usable{(dice() % 32 + 1) << 30};
      cards.push_back(card(i, usable, Bytes{dice() % (usable.count >> 20) << 20}));
      cards.back().free_share = {static_cast<uint32_t>(dice() % 10001)};
      cards.back().exclusive = dice() % 8 == 0;
    }
    Request request = asking(Bytes{(dice() % 16384 + 1ull) << 20}, dice() % 4 + 1);
    request.share = {static_cast<uint32_t>(dice() % 3 * 2500)};
    const Answer answer = place(cards, request, dice() % 2 ? Strategy::binpack : Strategy::spread);
    ASSERT_EQ(answer.verdicts.size(), cards.size());
    if (!answer.placement) {
      ASSERT_FALSE(answer.summary.empty());
      continue;
    }
    const auto& chosen = answer.placement->cards;
    ASSERT_EQ(chosen.size(), request.devices);
    ASSERT_TRUE(std::ranges::adjacent_find(chosen, std::ranges::greater_equal{}) == chosen.end());
    for (const size_t i : chosen) {
      ASSERT_LE(answer.placement->memory, cards[i].free);
      ASSERT_LE(answer.placement->share, cards[i].free_share);
      ASSERT_FALSE(cards[i].exclusive);
    }
  }
}

}  // namespace
}  // namespace carve::place
