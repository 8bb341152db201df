// kind: Application. A service in the form of Volcengine's AI applications: it requests a GPU as a number of
// devices or parts of one, over all devices of a replica. dialects/application translates it into a service,
// and it runs as such.
#pragma once

#include "objects/service_object.h"

namespace carve::objects {

struct ApplicationGpu {
  std::string type = "none";        // "none"; "mGPU" for a part; "GPU" for whole devices.
  bool multi_device = false;        // Several devices provide equal parts.
  std::string compute;              // Per device: "0.3", "1"; with multi_device in total: "1", "2".
  std::string memory;               // MiB: "4096"; or with a unit: "4GiB". With multi_device in total.
  std::string policy;               // "fixed-share", ...; empty for the node's.
  std::optional<uint32_t> devices;  // 1 if absent.
};

struct ApplicationSpec {
  uint32_t replicas = 1;
  bool stopped = false;  // No replica runs; `replicas` is kept for the next start.
  std::string pool;      // Empty for any node.
  std::vector<Toleration> tolerations;
  bool elastic_container = false;
  Resource cpu;
  Resource memory;
  ApplicationGpu gpu;
  Run run;
  std::optional<uint32_t> port;
  Readiness readiness;
  Update update;
  uint32_t termination_grace_period_seconds = 30;
  std::string restarted_at;  // As in a service.
};

struct Application {
  std::string api_version;
  std::string kind;
  Metadata metadata;
  ApplicationSpec spec;
  ServiceStatus status;
};

}  // namespace carve::objects
