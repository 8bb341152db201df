// kind: Service. Equal replicas of one program, each in a slice of its own, behind one address.
#pragma once

#include <optional>

#include "core/pool_words.h"
#include "core/restart_policy.h"
#include "objects/autoscale_metric.h"
#include "objects/object.h"
#include "objects/states.h"
#include "wire/api/json.h"

namespace carve::objects {

// A replica's part of one of its devices.
struct GpuPart {
  std::string memory;  // As in a Gpu.
  std::string share;   // Best effort if it is empty.
};

// Each replica's part of a GPU. A replica gets none if it is absent.
struct Gpu {
  std::string memory;  // Per device: "4GiB", "20GB", "50%", "16 units" (of the node). Empty with `exclusive`.
  std::string share;   // Part of one device's time: "30%". Empty for best effort.
  uint32_t devices = 1;    // Number of devices, each with this memory and share.
  bool exclusive = false;  // Whole devices.
  std::string isolation;   // "none", "memory", "memory+compute"; empty for the node's.
  std::string policy;      // "fixed-share", ...; empty for the node's.
  // Memory and share of each device, if they differ; replaces `memory`, `share` and `devices`.
  std::vector<GpuPart> parts;
};

// A request counts for placement, a limit applies to the running program. "2", "500m"; "4GiB", "512MiB".
struct Resource {
  std::string request;  // Amount that placement reserves.
  std::string limit;    // Most that the program may use; no limit if it is empty.
};

struct Run {
  std::vector<std::string> command;        // The program and its arguments; replaces an image's ENTRYPOINT.
  std::vector<std::string> args;           // Further arguments; replace an image's CMD.
  std::string image;                       // Empty for a local program.
  std::map<std::string, std::string> env;  // At most 64 KiB.
  std::string workdir;                     // Empty for the owner's home.
};

struct HttpGet {
  std::string path = "/";  // Must return a status from 200 to 399.
};

struct Readiness {
  std::optional<HttpGet> http_get;  // If absent, a TCP connection is enough.
  uint32_t period_seconds = 2;      // Time between two checks.
  uint32_t timeout_seconds = 1;     // Time after which a check has failed.
  uint32_t failure_threshold = 3;   // Failed checks in a row after which a ready replica is not ready.
};

struct Update {
  uint32_t max_surge = 1;        // Replicas that may run in addition to `replicas`.
  uint32_t max_unavailable = 0;  // Replicas that may be missing.
  // Time without progress after which the condition Progressing is False.
  uint32_t progress_deadline_seconds = 600;
};

// Lets replicas run on nodes with a taint (workload/pool.h). "Exists" tolerates any value of the key.
struct Toleration {
  std::string key;                                                 // Empty with "Exists" for every key.
  Word<TolerationOperator> operator_ = TolerationOperator::equal;  // "Equal", "Exists"
  std::string value;                                               // The taint's value, for "Equal".
  Word<TaintEffect> effect;  // "NoSchedule", "PreferNoSchedule", "NoExecute"; empty for every effect.
};

struct Autoscale {
  uint32_t min = 1;                                     // Fewest replicas.
  uint32_t max = 1;                                     // Most replicas.
  Word<AutoscaleMetric> metric = AutoscaleMetric::qps;  // "qps", "gpuUtilization", "concurrency"
  uint32_t target = 1;                                  // Value of the metric per replica.
};

struct ServiceSpec {
  uint32_t replicas = 1;                // Number of equal programs, each in a slice of its own; 0 to 64.
  bool stopped = false;                 // No replica runs; `replicas` is kept for the next start.
  std::string pool;                     // Empty for any node.
  std::vector<Toleration> tolerations;  // Taints that its nodes may have.
  std::optional<Gpu> gpu;               // Part of a GPU for each replica; none if absent.
  Resource cpu;                         // Cores of the host for each replica.
  Resource memory;                      // Memory of the host for each replica.
  Run run;                              // The program.
  std::optional<uint32_t> port;  // 1 to 65535. The program's nominal port; each replica gets its own PORT.
  // The port of a program that does not read PORT. All replicas of a machine would share it, so there is at
  // most one, and its successor starts when it has ended.
  std::optional<uint32_t> target_port;
  // A service whose programs have all ended, and are not started again, is stopped.
  RestartPolicy restart_policy = RestartPolicy::always;
  Readiness readiness;  // How the controller finds out that a replica can serve.
  Update update;        // How replicas are replaced when `spec` changes.
  // Changes the number of replicas with the load; it then replaces `replicas`.
  std::optional<Autoscale> autoscale;
  uint32_t termination_grace_period_seconds = 30;  // Time between SIGTERM and SIGKILL.
  std::string restarted_at;  // Time of the last requested restart; a new time makes a new revision.
  Source source;             // The document of another system that the service was made from.
};

struct ReplicaStatus {
  uint32_t index = 0;                // From 0.
  uint32_t revision = 0;             // The revision that it runs.
  std::string slice;                 // Name of its slice.
  std::string node;                  // Name of its node.
  std::vector<std::string> devices;  // UUIDs.
  Word<ReplicaState>
      state;          // "Starting", "Running", "Ready", "CrashLoopBackOff", "ImagePullFailed", "Stopping",
                      // "Succeeded", "Failed"
  uint32_t port = 0;  // Where its program listens; 0 without a port.
  uint32_t restarts = 0;  // Restarts of its program.
  std::string
      last_exit;  // "exit status 1", "signal 9", ...: of the last attempt that ended; empty if none has.
};

struct ServiceStatus {
  uint32_t observed_generation = 0;  // The generation of `spec` that this status describes.
  std::string updated_at;            // When the controller saw this generation.
  Word<WorkloadPhase> phase;         // "Waiting", "Running", "Updating", "Stopped", "Succeeded", "Failed",
                                     // "CrashLoopBackOff", "ImagePullFailed", "Deleting"
  uint32_t replicas = 0;             // Replicas that hold a slice, including those that are being stopped.
  uint32_t desired_replicas = 0;     // spec.replicas, or the number that autoscaling decided.
  uint32_t ready_replicas = 0;       // Replicas that pass the readiness check.
  uint32_t updated_replicas = 0;     // Available and of the current revision.
  uint32_t restarts = 0;             // Restarts of all current replicas.
  uint32_t revision = 0;             // The current revision.
  std::string ended;                 // How its run-once programs ended: "exit status 0"; otherwise empty.
  std::string endpoint;              // "http://127.0.0.1:PORT"; empty without a port.
  std::string selector;              // Labels of its pods on Kubernetes; empty on machines of its own.
  uint64_t memory_bytes = 0;         // Per replica and device; 0 if the devices differ.
  std::string memory_text;           // "20 GB (18.6 GiB)"
  std::string gpu;                   // Amounts of each replica: "4 GiB, 30 %"; empty if none.
  uint32_t share_bp = 0;             // Per replica and device, in hundredths of a percent; 0 for best effort.
  std::vector<Condition> conditions;        // The current condition of each type.
  std::vector<std::string> warnings;        // Warnings for the author of the document.
  std::vector<ReplicaStatus> replica_list;  // One entry per replica.
};

struct Service {
  std::string api_version;
  std::string kind;
  Metadata metadata;
  ServiceSpec spec;
  ServiceStatus status;
};

}  // namespace carve::objects

CARVE_DECLARE_DOCUMENT(objects::ServiceSpec)
CARVE_DECLARE_DOCUMENT(objects::ServiceStatus)
CARVE_DECLARE_DOCUMENT(objects::Service)
