// Fills one device before the next, and one node before the next, so that free capacity stays in large
// blocks.
#include "place/order.h"
#include "place/scoring.h"

namespace carve::place {
namespace {

class Binpack : public Scoring {
 public:
  Score score(const Fleet& fleet, uint32_t n, const RequestShape& shape,
              const FittingDevices& fitting) const override {
    return {static_cast<uint8_t>(1 + taken_in_200(fleet, n)),
            choose(shape, fitting,
                   [&](unsigned part, unsigned i) { return freedom(shape, part, fleet.devices(n)[i]); })};
  }
};

}  // namespace

std::unique_ptr<Scoring> binpack() { return std::make_unique<Binpack>(); }

}  // namespace carve::place
