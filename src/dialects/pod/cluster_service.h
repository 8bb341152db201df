// A Kubernetes document of kind Service (apiVersion v1). It does not become an object but sets the port of
// the workload whose pods its selector matches.
//
//   | ports[0]             | service                                                                        |
//   |----------------------|--------------------------------------------------------------------------------|
//   | port                 | spec.port                                                                      |
//   | targetPort, or port  | spec.targetPort, unless the program reads the variable PORT: then each replica |
//   |                      | gets a port of its own                                                         |
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "objects/service_object.h"
#include "wire/api/json.h"

namespace carve::dialects {

struct ClusterService {
  std::string name;
  std::string name_space;
  std::map<std::string, std::string> selector;
  uint32_t port = 0;
  std::string target;  // A number, or the name of a port of the container.
  std::vector<std::string> warnings;
};

// Returns whether the JSON document is a Kubernetes Service rather than a Carve Service.
bool is_cluster_service(std::string_view json);

// Parses the Service. Fails with every error.
Result<ClusterService, api::FieldErrors> read_cluster_service(std::string_view json);

// The parts of a manifest's pod that a Service refers to.
struct PodFace {
  std::map<std::string, std::string> labels;
  std::map<std::string, uint32_t> ports;  // Ports of the container that runs, by name.
};
PodFace pod_face(std::string_view manifest);

// Returns whether the selector matches the labels of the pods.
bool selects(const ClusterService&, const PodFace&);

// Sets the port of the service that runs the manifest. Fails with every error.
Result<void, api::FieldErrors> give_port(const ClusterService&, const PodFace&, objects::ServiceSpec&);

}  // namespace carve::dialects
