// A cluster for tests under virtual time: an API server in memory with the controllers that Kubernetes itself has
// for Deployments and for deleted owners, and one or two replicas of the controller.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/kubernetes/cluster_reconciler.h"
#include "controller/kubernetes/cluster_registry.h"
#include "kubernetes/api/lease_holder.h"
#include "kubernetes/api/testing/simulated_api_client.h"

namespace carve::controller {

inline constexpr const char* custom_services = "/apis/carve.dev/v1/services";
inline constexpr const char* deployments = "/apis/apps/v1/deployments";
inline constexpr const char* cluster_services = "/api/v1/services";
inline constexpr const char* controller_revisions = "/apis/apps/v1/controllerrevisions";

// Sends requests of the registry; virtual time passes until the response.
class SimulatedCaller final : public ApiCaller {
 public:
  SimulatedCaller(kubernetes::VirtualTime& time, kubernetes::ApiClient& client)
      : time_(time), client_(client) {}
  kubernetes::ApiAnswer call(kubernetes::ApiRequest request) override {
    std::optional<kubernetes::ApiAnswer> out;
    const auto call =
        client_.send(std::move(request), [&](kubernetes::ApiAnswer answer) { out = std::move(answer); });
    for (unsigned i = 0; !out && i < 1000; ++i) time_.run_for(kubernetes::second_ns / 100);
    return out ? *out : kubernetes::ApiAnswer{.problem = "no answer"};
  }

 private:
  kubernetes::VirtualTime& time_;
  kubernetes::ApiClient& client_;
};

// A replica of the controller, which may be killed.
class ClusterReplica {
 public:
  ClusterReplica(kubernetes::VirtualTime& time, kubernetes::ApiServerFake& server, const std::string& name,
                 uint64_t seed)
      : client_(time, server, seed), caller_(time, client_), objects(caller_) {
    lease.emplace(
        client_,
        kubernetes::LeaseHolder::Settings{.name_space = "carve-system",
                                          .name = "carve-controller",
                                          .identity = name,
                                          .time_text = [&time] { return fmt::format("{}", time.now()); }},
        [this](bool is_held) {
          if (is_held) reconciler->take_over();
        });
    reconciler.emplace(client_, objects,
                       ClusterReconciler::Settings{.may_write = [this] { return lease->is_held(); },
                                                   .utc_ns = [&time] { return time.now(); },
                                                   .seed = seed});
  }
  ~ClusterReplica() {
    client_.forget_calls();
    reconciler.reset();
    lease.reset();
  }

 private:
  kubernetes::SimulatedApiClient client_;
  SimulatedCaller caller_;

 public:
  ClusterRegistry objects;
  std::optional<kubernetes::LeaseHolder> lease;
  std::optional<ClusterReconciler> reconciler;
};

struct ClusterScenario {
  using json = nlohmann::json;

  kubernetes::VirtualTime time;
  kubernetes::ApiServerFake server;
  uint64_t seed = 1;

  std::unique_ptr<ClusterReplica> replica(const std::string& name) {
    return std::make_unique<ClusterReplica>(time, server, name, seed++);
  }

  // Applies a document as kubectl does.
  void apply(const std::string& name, json spec) {
    json object = {{"apiVersion", "carve.dev/v1"},
                   {"kind", "Service"},
                   {"metadata", {{"name", name}, {"namespace", "default"}}},
                   {"spec", std::move(spec)}};
    if (const json* before = server.find(custom_services, "default", name)) {
      json metadata = (*before)["metadata"];
      object["metadata"] = metadata;
      if (before->contains("status")) object["status"] = (*before)["status"];
    }
    server.put(custom_services, object);
  }
  static json spec(unsigned replicas, const std::string& command) {
    return {{"replicas", replicas}, {"port", 8000}, {"run", {{"image", "i"}, {"command", {command}}}}};
  }

  // Does what Kubernetes does: a Deployment's status follows its spec, and objects without their owner go.
  void settle_kubernetes() {
    for (const json& deployment : server.all(deployments)) {
      json next = deployment;
      const auto replicas = deployment["spec"]["replicas"];
      next["status"] = {{"observedGeneration", deployment["metadata"]["generation"]},
                        {"replicas", replicas},
                        {"readyReplicas", replicas},
                        {"availableReplicas", replicas},
                        {"updatedReplicas", replicas}};
      if (next != deployment) server.put(deployments, next);
    }
    for (const char* collection : {deployments, cluster_services, controller_revisions})
      for (const json& made : server.all(collection))
        if (!has_owner(made)) server.remove(collection, "default", made["metadata"]["name"]);
  }
  bool has_owner(const json& made) const {
    if (!made["metadata"].contains("ownerReferences")) return true;
    for (const json& custom : server.all(custom_services))
      if (custom["metadata"]["uid"] == made["metadata"]["ownerReferences"][0]["uid"]) return true;
    return false;
  }
  void run_for(kubernetes::Nanoseconds length) {
    for (const kubernetes::Nanoseconds end = time.now() + length; time.now() < end;) {
      time.run_for(kubernetes::second_ns / 2);
      settle_kubernetes();
    }
  }

  const json* custom(const std::string& name) const { return server.find(custom_services, "default", name); }
  const json* deployment(const std::string& name) const { return server.find(deployments, "default", name); }
  // Returns a member of the status; null if there is none.
  json status(const std::string& name, const char* member) const {
    const json* object = custom(name);
    if (object == nullptr || !object->contains("status")) return {};
    return (*object)["status"].value(member, json());
  }
  // Returns the number of changes that were sent, except for renewals of the Lease.
  size_t writes() const {
    size_t out = 0;
    for (const std::string& request : server.requests())
      out += !request.starts_with("GET") && !request.starts_with("WATCH") &&
             request.find("/leases") == std::string::npos;
    return out;
  }
};

}  // namespace carve::controller
