// Snapshots of fleets and matrices of links are untrusted input. A parsed snapshot is valid: slices hold at
// most what a device has, and a plan for it keeps the place of every slice that it does not move.
#include <bit>
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
    for (const place::DeviceState& c : fleet.devices(n))
      if (c.free > c.usable || c.free_share > whole_device || c.isolated > max_isolated_slices) std::abort();
  const uint64_t free_before = fleet.free_share();
  const place::ConsolidationPlan plan = place::plan_consolidation(scene.engine, scene.standing, 2);
  if (plan.moves.size() > snapshot.held.size() || fleet.free_share() != free_before) std::abort();
  // Devices that become empty together with the two requested ones are also in the plan. Each occurs once,
  // and each had slices.
  std::set<std::pair<uint32_t, unsigned>> emptied;
  for (const auto& [node, device] : plan.emptied) {
    if (node >= fleet.nodes() || device >= fleet.devices(node).size() ||
        !emptied.emplace(node, device).second)
      std::abort();
    if (fleet.devices(node)[device].slices == 0) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0 || size > 1 << 16) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 1) {
    const unsigned devices = data[0] / 2 % (place::max_node_devices + 1);
    const auto links = place::Topology::read(text, devices);
    if (!links && links.error().message.empty()) std::abort();
    const auto has_two = [](place::DeviceSet set) { return std::popcount(set) >= 2; };
    if (links && devices > 1 && links->tightest(0b11, 0, has_two) != 0b11) std::abort();
    return 0;
  }
  const auto snapshot = parse_snapshot(text, "fuzz");
  if (!snapshot) {
    if (!snapshot.error().message.starts_with("fuzz:")) std::abort();  // The error names the file.
    return 0;
  }
  if (snapshot->nodes.size() <= 16 && snapshot->held.size() <= 64) {
    check(*snapshot, Strategy::binpack);
    check(*snapshot, Strategy::fgd_scarcity);
  }
  return 0;
}
