// Parses and checks a document of kind Queue.
#pragma once

#include <string>
#include <string_view>

#include "engines/engine_pods.h"
#include "objects/queue_object.h"

namespace carve::objects {

inline constexpr size_t max_compute_groups = 32;

// Parses the JSON text strictly and returns the queue. Fails with every error.
Result<objects::Queue, api::FieldErrors> read_queue(std::string_view json);

// Returns the limits for requests by the queue's jobs. The spec must be valid.
engines::QueueTerms queue_terms(std::string name, const objects::QueueSpec&);

// Returns the queue for workload/queue.h. A quota of devices is counted in devices of the given size. The
// spec must be valid.
workload::Queue workload_queue(std::string name, const objects::QueueSpec&, uint64_t device_bytes);

}  // namespace carve::objects
