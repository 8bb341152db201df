// kind: Queue. Jobs wait in it until their slices fit (workload/queue.h).
#pragma once

#include <optional>

#include "core/pool_words.h"
#include "core/word.h"
#include "objects/object.h"
#include "wire/api/json.h"

namespace carve::objects {

// The quota that a queue can always reclaim: either devices, or memory and compute.
struct QueueQuota {
  uint32_t devices = 0;  // Whole devices, for a queue of whole devices.
  std::string memory;    // "40GiB", over all devices.
  std::string compute;   // In units of one device: "250%" is two and a half.
};

struct QueueSpec {
  Word<QueueGpu> gpu =
      QueueGpu::mgpu;               // "none"; "gpu" for whole devices; "mgpu" for parts of them. Immutable.
  std::string pool;                 // Empty for any node.
  std::optional<QueueQuota> quota;  // Amount that it can always reclaim; nothing if absent.
  uint32_t weight = 1;              // Of its part in the pool, relative to other queues.
  uint32_t max_running = 0;         // Jobs; 0 for no limit.
  uint32_t max_slices = 0;          // Over all its running jobs; 0 for no limit.
  bool strict = false;    // Only the steps of the vendor: 5, 10, ... 95, 99 percent; 256 MiB or more.
  bool backfill = false;  // A later job that does not delay the head may pass it.
  Word<QueueBilling> billing = QueueBilling::on_demand;   // "onDemand", "prepaid"
  std::vector<std::string> compute_groups = {"default"};  // Names that a job may give as `computeGroup`.
};

struct QueueStatus {
  uint32_t waiting = 0;       // Jobs.
  uint32_t running = 0;       // Jobs.
  uint32_t slices = 0;        // Slices of its running jobs.
  uint64_t memory_bytes = 0;  // Memory of these slices.
  uint64_t compute_bp = 0;    // Compute of these slices, in hundredths of a percent of one device.
};

struct Queue {
  std::string api_version;
  std::string kind;
  Metadata metadata;
  QueueSpec spec;
  QueueStatus status;
};

}  // namespace carve::objects

CARVE_DECLARE_DOCUMENT(objects::QueueSpec)
CARVE_DECLARE_DOCUMENT(objects::QueueStatus)
CARVE_DECLARE_DOCUMENT(objects::Queue)
