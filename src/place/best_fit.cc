// Chooses the node with the least CPU and compute left, weighted equally, and on it the device with the least
// free. This is the best fit of the FGD paper, which measures both in relation to the largest node, with 128
// cores and 8 devices.
#include <algorithm>

#include "place/order.h"
#include "place/rules.h"
#include "place/scoring.h"

namespace carve::place {
namespace {

constexpr int64_t max_cpu_milli = 128'000;
constexpr int64_t max_share_bp = 8 * 10'000;

class BestFit : public Scoring {
 public:
  Score score(const Fleet& fleet, uint32_t n, const RequestShape& shape,
              const FittingDevices& fitting) const override {
    int64_t share = 0;
    for (const DeviceState& c : fleet.devices(n)) share += c.free_share.basis_points;
    share -= static_cast<int64_t>(total_share(shape));
    const int64_t cpu = int64_t{fleet.node(n).cpu_free} - shape.cpu_milli;
    // 100 * (1 - cpu / (2 * largest) - share / (2 * largest)), rounded down.
    const int64_t unit = 2 * max_cpu_milli * max_share_bp;
    const int64_t value = 100 * (unit - cpu * max_share_bp - share * max_cpu_milli) / unit;
    return {static_cast<uint8_t>(std::clamp<int64_t>(value, 0, 100) + 1),
            choose(shape, fitting,
                   [&](unsigned part, unsigned i) { return freedom(shape, part, fleet.devices(n)[i]); })};
  }
};

}  // namespace

std::unique_ptr<Scoring> best_fit() { return std::make_unique<BestFit>(); }

}  // namespace carve::place
