// kind: Application. A service in the form of Volcengine's AI applications: it requests a GPU as a number of
// devices or parts of one, over all devices of a replica. It is translated into a service
// (dialects/application), and runs as such.
#pragma once

#include "objects/service_object.h"
#include "wire/api/json.h"

namespace carve::objects {

struct ApplicationGpu {
  std::string type = "none";        // "none"; "mGPU" for a part; "GPU" for whole devices.
  bool multi_device = false;        // Several devices provide equal parts.
  std::string compute;              // Per device: "0.3", "1"; in total with multiDevice: "1", "2".
  std::string memory;               // MiB: "4096"; or with a unit: "4GiB". In total with multiDevice.
  std::string policy;               // "fixed-share", ...; empty for the node's.
  std::optional<uint32_t> devices;  // 1 if absent.
};

struct ApplicationSpec {
  uint32_t replicas = 1;                           // Number of equal programs, each in a slice of its own.
  bool stopped = false;                            // No replica runs; `replicas` is kept for the next start.
  std::string pool;                                // Empty for any node.
  std::vector<Toleration> tolerations;             // Taints that its nodes may have.
  bool elastic_container = false;                  // Runs as an elastic container instance (VCI).
  Resource cpu;                                    // Cores of the host for each replica.
  Resource memory;                                 // Memory of the host for each replica.
  ApplicationGpu gpu;                              // GPU of each replica.
  Run run;                                         // The program.
  std::optional<uint32_t> port;                    // As in a service.
  Readiness readiness;                             // As in a service.
  Update update;                                   // As in a service.
  uint32_t termination_grace_period_seconds = 30;  // Time between SIGTERM and SIGKILL.
  std::string restarted_at;                        // As in a service.
};

struct Application {
  std::string api_version;
  std::string kind;
  Metadata metadata;
  ApplicationSpec spec;
  ServiceStatus status;
};

}  // namespace carve::objects

CARVE_DECLARE_DOCUMENT(objects::ApplicationSpec)
CARVE_DECLARE_DOCUMENT(objects::Application)
