// kubelet's side of a DRA driver for tests. Like the real kubelet it finds the driver's registration socket in
// plugins_registry, takes the first version of the driver's list that it knows, reports the result of the
// registration, and calls the driver at the endpoint that it has registered.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "kubernetes/node/rules/resource_claim.h"
#include "kubernetes/node/rules/resource_slice.h"

namespace carve::kubernetes::node {

class DraKubeletFake {
 public:
  // Creates the folders of plugins in this one.
  explicit DraKubeletFake(std::string folder);
  ~DraKubeletFake();
  DraKubeletFake(const DraKubeletFake&) = delete;
  DraKubeletFake& operator=(const DraKubeletFake&) = delete;

  struct Info {
    std::string type, name, endpoint;
    std::vector<std::string> versions;
  };
  // Registers the driver. Fails with kubelet's message to the driver if none of its versions is known.
  Result<Info, std::string> register_driver(const std::set<std::string>& known = {"v1.DRAPlugin"});

  // Return the result for each claim: its devices, or the error. Fail if the call fails.
  using Prepared = std::vector<Result<std::vector<PreparedDevice>, std::string>>;
  Result<Prepared, std::string> prepare(const std::vector<ClaimName>&, int patience_seconds = 45);
  Result<std::vector<std::string>, std::string> unprepare(const std::vector<ClaimName>&);

  // Opens the health stream, after the earlier one has ended.
  void watch_health();
  void end_health();
  // Returns the newest state that a stream has delivered.
  std::vector<DeviceCondition> health() const;
  size_t health_messages() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace carve::kubernetes::node
