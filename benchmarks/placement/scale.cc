// How the cost of a decision grows: with nodes, with kinds of requests, with cards on a node; and what the
// first decision of a kind costs, which has to look at every node. A made-up cluster, mixed as large ones are
// (most nodes with the full number of cards, a third with two), half full, whose tenants leave again.
// One thread.
#include <fmt/format.h>
#include <algorithm>
#include <ctime>

#include "place/engine.h"

namespace {

using namespace carve;
using namespace carve::place;
// Of this thread's own time: neighbours on a shared machine do not count.
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
  Cluster(Strategy strategy, uint32_t nodes, unsigned cards, unsigned kinds) : engine(strategy) {
    for (uint32_t n = 0; n < nodes; ++n) {
      const unsigned model = mixed(dice_) % 6;
      NodeState node;
      node.model = static_cast<uint8_t>(*engine.fleet().model(fmt::format("model{}", model)));
      node.cpu_free = 96'000;
      node.host_free = 512_GiB;
      CardState card;
      card.usable = card.free = 16_GiB;
      engine.fleet().add(node, std::vector<CardState>(model < 2 ? std::min(2u, cards) : cards, card));
    }
    Workload expected;
    for (unsigned k = 0; k < kinds; ++k) {
      kinds_.push_back(engine.kind(request(k)));
      expected.push_back({engine.ask(kinds_.back()), certain / kinds});
    }
    if (engine.expects()) engine.expect(expected);
    const uint64_t all = uint64_t{engine.fleet().cards()} * whole_device.basis_points;
    while (engine.fleet().free_share() * 2 > all) arrive(kinds_[0]);  // One kind: the others' scores wait.
  }

  // Distinct for each k: parts of a card mostly, whole cards, a few for several.
  Ask request(unsigned k) const {
    Ask a;
    a.isolated = false;
    a.cpu_milli = 1000 + k % 97 * 100 + k / 97;
    a.cards = static_cast<uint8_t>(k % 20 == 7 ? 2 : k % 40 == 13 ? 4 : 1);
    a.share = {k % 3 == 0 || a.cards > 1 ? 10000 : k % 9 * 1000 + 500};
    if (k % 10 == 4) a.models = Models{1} << k % 6;
    return a;
  }

  // Some kinds come often, many seldom: a half of all arrivals are of a quarter of the kinds.
  bool arrive() {
    return arrive(kinds_[(mixed(dice_) % kinds_.size()) * (mixed(dice_) % kinds_.size()) / kinds_.size()]);
  }
  bool arrive(Kind kind) {
    const auto spot = engine.place(kind);
    if (spot) standing_.emplace_back(kind, *spot);
    return spot.has_value();
  }
  void leave() {
    std::swap(standing_[mixed(dice_) % standing_.size()], standing_.back());
    engine.release(standing_.back().first, standing_.back().second);
    standing_.pop_back();
  }

  // An arrival and a departure each.
  double decisions_per_second(int count) {
    for (int i = 0; i < count; ++i)  // Until every kind has been asked for.
      if (arrive()) leave();
    const double begin = seconds();
    for (int i = 0; i < count; ++i)
      if (arrive()) leave();
    return count / (seconds() - begin);
  }

  Engine engine;

 private:
  uint64_t dice_ = 42;
  std::vector<Kind> kinds_;
  std::vector<std::pair<Kind, Spot>> standing_;
};

std::string rows;

void figure(std::string_view name, double value, std::string_view unit, std::string_view goal,
            std::string_view better) {
  rows += fmt::format(
      R"({}{{"name": "placement.{}", "value": {:.4g}, "unit": "{}", "goal": {}, "better": "{}", "native": null, "spread": null, "where": "made-up cluster"}})",
      rows.empty() ? "" : ",\n ", name, value, unit, goal, better);
}

}  // namespace

int main() {
  for (const uint32_t nodes : {1'000u, 10'000u, 100'000u}) {
    Cluster cluster(Strategy::carve, nodes, 6, 150);
    figure(fmt::format("nodes.{}.carve", nodes), cluster.decisions_per_second(4'000), "1/s",
           nodes == 100'000 ? "10000" : "null", "higher");
    figure(fmt::format("nodes.{}.bytes", nodes), static_cast<double>(cluster.engine.bytes_per_node()), "B",
           nodes == 100'000 ? "1024" : "null", "lower");
  }
  for (const unsigned kinds : {15u, 150u, 500u})
    figure(fmt::format("kinds.{}.carve", kinds),
           Cluster(Strategy::carve, 5'000, 8, kinds).decisions_per_second(4'000), "1/s", "null", "higher");
  for (const unsigned cards : {2u, 8u, 32u})
    figure(fmt::format("cards.{}.carve", cards),
           Cluster(Strategy::carve, 5'000, cards, 150).decisions_per_second(4'000), "1/s", "null", "higher");

  // The first decision of 500 kinds that were never asked for.
  Cluster cluster(Strategy::carve, 5'000, 8, 150);
  std::vector<double> cold;
  for (unsigned k = 1000; k < 1500; ++k) {
    const Kind kind = cluster.engine.kind(cluster.request(k));
    const double begin = seconds();
    (void)cluster.engine.find(kind);
    cold.push_back((seconds() - begin) * 1e3);
  }
  std::ranges::sort(cold);
  figure("cold.p50", cold[250], "ms", "null", "lower");
  figure("cold.p99", cold[495], "ms", "2", "lower");
  fmt::print("[{}]\n", rows);
}
