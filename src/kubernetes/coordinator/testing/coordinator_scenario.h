// Runs the coordinator against an in-memory API server under virtual time. The test acts as the scheduler and
// changes the server's objects.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kubernetes/api/testing/simulated_api_client.h"
#include "kubernetes/coordinator/coordinator.h"
#include "kubernetes/coordinator/snapshot/testing/cluster_objects.h"
#include "wire/api/json_value.h"

namespace carve::kubernetes::coordinator::testing {

using api::Json;
using kubernetes::second_ns;

inline constexpr const char* pods_path = "/api/v1/pods";
inline constexpr const char* nodes_path = "/api/v1/nodes";
inline constexpr const char* config_maps = "/api/v1/configmaps";
inline constexpr const char* leases = "/apis/coordination.k8s.io/v1/leases";

struct Asker final : http::LaterAnswer {
  http::Response response;
  std::shared_ptr<void> subscription;
  void answer(http::Response given) override { response = std::move(given); }
};

struct CoordinatorScenario {
  kubernetes::VirtualTime time;
  kubernetes::ApiServerFake server;
  kubernetes::SimulatedApiClient client{time, server, 1};
  std::string certificate_problem;
  unsigned renewals = 0;
  std::string acquire_time = "2026-01-01T00:00:00.000000Z";
  bool is_renewed = true;
  std::string holder = "h1_0b2c7c3e-1d1f-4c59-9f1a-2f5a3c1d7e01";
  std::optional<Coordinator> coordinator;

  CoordinatorScenario() {
    write_settings({{"gpuMemoryUnit", "1GiB"}});
    server.put("/api/v1/namespaces", {{"metadata", {{"name", "a"}}}});
    kubernetes::ObjectMeta node = node_object("n0", a10_devices(0, 1));
    server.put(nodes_path, {{"metadata",
                             {{"name", "n0"},
                              {"labels", {{"carve.dev/node", "extender"}}},
                              {"annotations", nlohmann::json(node.annotations)}}}});
    renew();
  }
  void begin() {
    coordinator.emplace(
        client,
        CoordinatorSettings{.lease_path = "/apis/coordination.k8s.io/v1/namespaces/carve-system/leases/"
                                          "carve-scheduler",
                            .host = "h1",
                            .version = "1",
                            .utc_ns = [] { return int64_t{0}; },
                            .certificate_problem = [this] { return certificate_problem; }});
  }
  void write_settings(const nlohmann::json& data) {
    server.put(config_maps,
               {{"metadata", {{"name", "carve-settings"}, {"namespace", "carve-system"}}}, {"data", data}});
  }
  void renew() {
    if (!holder.empty() && is_renewed)
      server.put(leases,
                 {{"metadata", {{"name", "carve-scheduler"}, {"namespace", "carve-system"}}},
                  {"spec",
                   {{"holderIdentity", holder},
                    {"acquireTime", acquire_time},
                    {"leaseDurationSeconds", 15},
                    {"renewTime", "2026-01-01T00:00:00." + std::to_string(100000 + renewals++) + "Z"}}}});
    time.at(time.now() + 2 * second_ns, [this] { renew(); });
  }
  // Returns the pod in the form in which the scheduler sends it.
  nlohmann::json create_pod(const std::string& name, const kubernetes::PodRequest& request) {
    server.put(pods_path, {{"metadata",
                            {{"name", name},
                             {"namespace", "a"},
                             {"labels", {{"carve.dev/sliced", "true"}}},
                             {"annotations", nlohmann::json(pod_object(name, request).annotations)}}},
                           {"spec", nlohmann::json::object()},
                           {"status", {{"phase", "Pending"}}}});
    return *server.find(pods_path, "a", name);
  }
  nlohmann::json create_pod(const std::string& name, Bytes memory, uint64_t unit = 0) {
    kubernetes::PodRequest request{.dialect = unit == 0 ? "carve" : "ack"};
    request.containers["c"].amounts = {.memory_bytes = memory.count};
    if (unit != 0) request.containers["c"].unit = unit;
    return create_pod(name, request);
  }
  std::string end(http::Response response) {
    Asker asker;
    if (auto* later = std::get_if<http::LaterContent>(&response.content)) {
      asker.subscription = later->begin(asker);
      time.run_for(5 * second_ns);
      asker.subscription.reset();
      return std::get<std::string>(asker.response.content);
    }
    return std::get<std::string>(response.content);
  }
  std::string post(http::Response (Coordinator::*port)(const http::Request&), const std::string& path,
                   const std::string& body) {
    return end(((*coordinator).*port)({.method = "POST", .path = path, .query = "", .body = body}));
  }
  std::string filter(const nlohmann::json& pod, const std::vector<std::string>& nodes) {
    const Json question{{"Pod", Json::parse(pod.dump())}, {"NodeNames", nodes}};
    return post(&Coordinator::extender, "/filter", question.dump());
  }
  std::string bind(const nlohmann::json& pod, const std::string& node = "n0") {
    filter(pod, {node});
    return post(&Coordinator::extender, "/bind",
                Json{{"PodName", pod["metadata"]["name"].get<std::string>()},
                     {"PodNamespace", "a"},
                     {"PodUID", pod["metadata"]["uid"].get<std::string>()},
                     {"Node", node}}
                    .dump());
  }
  Json review(const Json& limits, const std::string& name_space = "a") {
    const Json pod{{"metadata", Json::object()},
                   {"spec", {{"containers", {{{"name", "c"}, {"resources", {{"limits", limits}}}}}}}}};
    const Json request{{"uid", "u"}, {"operation", "CREATE"}, {"namespace", name_space}, {"object", pod}};
    const Json text{{"apiVersion", "admission.k8s.io/v1"}, {"kind", "AdmissionReview"}, {"request", request}};
    return Json::parse(post(&Coordinator::webhook, "/mutate", text.dump()))["response"];
  }
  std::string ready() {
    return end(coordinator->health({.method = "GET", .path = "/readyz", .query = "", .body = ""}));
  }
};

}  // namespace carve::kubernetes::coordinator::testing
