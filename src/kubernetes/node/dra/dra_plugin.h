// The sockets of the DRA driver carve.dev: kubelet's DRAPlugin (v1) and DRAResourceHealth (v1alpha1) at
// KUBELET/plugins/carve.dev/dra.sock, and the registration at KUBELET/plugins_registry/carve.dev-reg.sock. kubelet
// watches the second folder, so the first socket is served before the second one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/failure.h"
#include "kubernetes/node/rules/resource_claim.h"
#include "kubernetes/node/rules/resource_slice.h"

namespace carve::kubernetes::node {

struct DraSockets {
  explicit DraSockets(const std::string& kubelet_dir)
      : folder(kubelet_dir + "/plugins/carve.dev"),
        plugin(folder + "/dra.sock"),
        registration(kubelet_dir + "/plugins_registry/carve.dev-reg.sock") {}

  std::string folder, plugin, registration;  // Paths that kubelet sees too.
};

// Callbacks of the plugin. All are called concurrently in gRPC's threads, and may block.
struct DraHandlers {
  std::function<void()> asked;  // Called for each GetInfo, which kubelet sends after each start of its own.
  // kubelet has accepted the driver, or has rejected it with this message.
  std::function<void(const std::string& problem)> registered;
  // Return one result for each claim, in the order of the claims.
  std::function<std::vector<Result<std::vector<PreparedDevice>, std::string>>(
      const std::vector<ClaimName>&, const std::function<bool()>& is_over)>
      prepare;
  std::function<std::vector<Result<void, std::string>>(const std::vector<ClaimName>&)> unprepare;
};

class DraPlugin {
 public:
  // Serves both sockets. Files that a previous program left behind are replaced.
  static Outcome<std::unique_ptr<DraPlugin>> serve(const DraSockets&, const DraHandlers&);
  virtual ~DraPlugin() = default;

  // Sets what kubelet's health streams report. Thread-safe.
  virtual void set_health(std::vector<DeviceCondition>) = 0;
};

}  // namespace carve::kubernetes::node
