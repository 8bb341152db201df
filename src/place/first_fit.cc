// Chooses the lowest-numbered fitting devices of the first node that can serve the request. First fit is the
// simplest strategy, and few strategies place more, because it fills a node before it uses the next one.
#include "place/scoring.h"

namespace carve::place {
namespace {

class FirstFit : public Scoring {
 public:
  Score score(const Fleet&, uint32_t, const RequestShape& shape,
              const FittingDevices& fitting) const override {
    return {1, choose(shape, fitting, [](unsigned, unsigned) { return 0; })};
  }
};

}  // namespace

std::unique_ptr<Scoring> first_fit() { return std::make_unique<FirstFit>(); }

}  // namespace carve::place
