// Snapshots of fleets and matrices of links come from anywhere. What is read is sound: no card of it is held
// beyond what it has, and a plan made over it leaves everybody who is not moved where he is.
#include <cstdlib>
#include <set>
#include <utility>

#include "place/topology.h"
#include "replay/snapshot.h"

namespace {

using namespace carve;
using namespace carve::replay;

void check(const Snapshot& snapshot, Strategy strategy) {
  Scene scene(snapshot, strategy);
  const place::Fleet& fleet = scene.engine.fleet();
  for (uint32_t n = 0; n < fleet.nodes(); ++n)
    for (const place::CardState& c : fleet.cards(n))
      if (c.free > c.usable || c.free_share > whole_device || c.isolated > most_tenants) std::abort();
  const uint64_t free_before = fleet.free_share();
  const place::Repack plan = place::repack(scene.engine, scene.standing, 2);
  if (plan.moves.size() > snapshot.held.size() || fleet.free_share() != free_before) std::abort();
  // Cards that go together with the two asked for are emptied too; each is told once, and held somebody.
  std::set<std::pair<uint32_t, unsigned>> emptied;
  for (const auto& [node, card] : plan.emptied) {
    if (node >= fleet.nodes() || card >= fleet.cards(node).size() || !emptied.emplace(node, card).second)
      std::abort();
    if (fleet.cards(node)[card].tenants == 0) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0 || size > 1 << 16) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 1) {
    const unsigned cards = data[0] / 2 % (place::most_cards + 1);
    const auto links = place::Topology::read(text, cards);
    if (!links && links.error().sentence.empty()) std::abort();
    if (links && cards > 1 && links->choose(0b11, 2, 0) != 0b11) std::abort();
    return 0;
  }
  const auto snapshot = parse_snapshot(text, "fuzz");
  if (!snapshot) {
    if (!snapshot.error().sentence.starts_with("fuzz:")) std::abort();  // It names the file.
    return 0;
  }
  if (snapshot->nodes.size() <= 16 && snapshot->held.size() <= 64) {
    check(*snapshot, Strategy::binpack);
    check(*snapshot, Strategy::carve);
  }
  return 0;
}
