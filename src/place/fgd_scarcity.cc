// The default on many nodes: fragmentation gradient descent with two additions. First, a type's weight is
// multiplied by the number of all devices divided by the number of devices that the type may use. So capacity
// that only few models offer is not filled with requests that any model could serve. Second, guards keep
// models and slots for expected requests (place/guards.h).
#include "place/bucket.h"
#include "place/fragments.h"
#include "place/guards.h"
#include "place/scoring.h"

namespace carve::place {
namespace {

class FgdScarcity : public Scoring {
 public:
  Score score(const Fleet& fleet, uint32_t n, const RequestShape& shape,
              const FittingDevices& fitting) const override {
    Score best;
    fragments_.alternatives(fleet, n, shape, fitting, [&](const Fragments::Step& step) {
      const auto value = static_cast<uint8_t>(1 + bucket(step.gradient));
      if (value > best.value) best = {value, step.devices};
    });
    return best;
  }

  void set_workload_model(const Fleet& fleet, const WorkloadModel& workload) override {
    guards_.set_workload_model(fleet, workload);
    fragments_.build(fleet, scarce(fleet, without_host_memory(workload)));
  }
  bool uses_workload_model() const override { return true; }
  bool learns_workload_model() const override { return true; }

  void changed(const Fleet& fleet, uint32_t n) override { guards_.changed(fleet, n); }
  Guards* guards() override { return &guards_; }

 private:
  Fragments fragments_;
  Guards guards_;
};

}  // namespace

WorkloadModel scarce(const Fleet& fleet, WorkloadModel workload) {
  for (Type& type : workload) {
    if (type.shape.devices == 0) continue;
    uint64_t allowed = 0;
    for (unsigned t = 0; t < fleet.models(); ++t)
      allowed += (type.shape.models >> t & 1) * fleet.devices_of_model(t);
    if (allowed != 0)
      type.weight = static_cast<int64_t>(static_cast<__int128>(type.weight) * fleet.devices() / allowed);
  }
  return workload;
}

std::unique_ptr<Scoring> fgd_scarcity() { return std::make_unique<FgdScarcity>(); }

}  // namespace carve::place
