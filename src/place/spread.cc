// Chooses the emptiest node and its emptiest devices, so that a slice shares a device with as few others as
// possible. The engine compares the number of replicas before the score, so replicas of one application are
// kept apart first.
#include "place/order.h"
#include "place/scoring.h"

namespace carve::place {
namespace {

class Spread : public Scoring {
 public:
  Score score(const Fleet& fleet, uint32_t n, const RequestShape& shape,
              const FittingDevices& fitting) const override {
    return {static_cast<uint8_t>(201 - taken_in_200(fleet, n)),
            choose(shape, fitting,
                   [&](unsigned part, unsigned i) { return ~freedom(shape, part, fleet.devices(n)[i]); })};
  }
  bool spreads_replicas() const override { return true; }
};

}  // namespace

std::unique_ptr<Scoring> spread() { return std::make_unique<Spread>(); }

}  // namespace carve::place
