// The first node that can serve, its lowest devices. It is the simplest strategy, and few place more: over a
// fixed order of nodes it fills a whole node before the next.
#include "place/order.h"
#include "place/scoring.h"

namespace carve::place {
namespace {

class FirstFit : public Scoring {
 public:
  Score score(const Fleet&, uint32_t, const RequestShape& shape, DeviceSet fitting) const override {
    return {1, lowest(fitting, shape.devices)};
  }
};

}  // namespace

std::unique_ptr<Scoring> first_fit() { return std::make_unique<FirstFit>(); }

}  // namespace carve::place
