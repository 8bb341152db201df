// What the texts of a service's spec mean in numbers, and whether the whole object is valid.
#pragma once

#include <optional>

#include "base/result.h"
#include "core/request.h"
#include "wire/api/field_error.h"
#include "wire/objects/service.h"

namespace carve::fronts {

inline constexpr size_t max_object_name_bytes = 48;
inline constexpr uint32_t max_service_replicas = 64;
inline constexpr size_t max_environment_bytes = 64 << 10;
inline constexpr uint32_t max_grace_seconds = 3600;

// The slice of one replica. Exactly one of the two amounts of memory, or none for whole devices.
struct GpuTerms {
  std::optional<uint64_t> memory_bytes;  // Per device.
  std::optional<uint32_t> memory_bp;     // Per device, of its usable memory.
  std::optional<uint32_t> share_bp;      // Of one device; absent: best effort.
  uint32_t devices = 1;
  bool exclusive = false;
  std::optional<Isolation> isolation;  // Absent: the node's.
  std::optional<Policy> policy;        // Absent: the node's.
};

// What one replica needs. An amount of 0 is not limited.
struct ReplicaTerms {
  std::optional<GpuTerms> gpu;
  uint64_t cpu_request_milli = 0;  // Thousandths of a core.
  uint64_t cpu_limit_milli = 0;
  uint64_t memory_request_bytes = 0;
  uint64_t memory_limit_bytes = 0;
};

// Returns the numbers, or an error for each text that is none.
Result<ReplicaTerms, api::FieldErrors> terms_of(const objects::ServiceSpec&);

// Returns all errors of the object; empty: it is valid.
api::FieldErrors check(const objects::Service&);

// Returns whether the text may name an object: 1 to 48 of a-z, 0-9 and -, with a letter or digit at both
// ends.
bool is_object_name(std::string_view name);

}  // namespace carve::fronts
