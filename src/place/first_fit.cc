// Chooses the lowest fitting devices of the first node that can serve the request. First fit is the simplest
// strategy, and few strategies place more: it fills a node before it uses the next one.
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
