// A service as numbers, and the rules that its document follows. In an objects::ServiceSpec amounts are
// texts, as the user wrote them; here they are bytes, thousandths of a core and basis points, and both are
// exact: 20GB is 20,000,000,000 bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/slice.h"
#include "wire/api/json.h"
#include "wire/objects/service_object.h"
#include "workload/pool.h"
#include "workload/service.h"

namespace carve::fronts {

inline constexpr size_t max_name_bytes = workload::max_service_name_bytes;  // Of an object.
inline constexpr size_t max_env_bytes = 64 << 10;         // Names, values and two bytes for each variable.
inline constexpr uint32_t max_memory_units = 1'000'000;   // Of 128 MiB: more than any device has.
inline constexpr uint64_t max_cpu_milli = 1'000'000'000;  // A million cores; core::Request has 32 bits.
inline constexpr size_t max_tolerations = 32;
inline constexpr uint32_t max_seconds = 86'400;  // Of a period, timeout, deadline or grace period.

// The part of a GPU that each replica gets. Of memory_bytes and memory_bp one is set, or none if it is
// exclusive.
struct GpuTerms {
  std::optional<uint64_t> memory_bytes;  // Per device.
  std::optional<uint32_t> memory_bp;     // Part of each device's usable memory.
  std::optional<uint32_t> memory_units;  // Per device; the node's unit at the grant says how much one is.
  std::optional<uint32_t> share_bp;      // Of each device; absent: best effort.
  uint32_t devices = 1;
  bool exclusive = false;
  std::optional<Isolation> isolation;  // Absent: the node's.
  std::optional<Policy> policy;        // Absent: the node's.

  friend bool operator==(const GpuTerms&, const GpuTerms&) = default;
};

// What each replica gets. 0: nothing is requested, or there is no limit. Without a request the limit is
// requested.
struct ReplicaTerms {
  std::optional<GpuTerms> gpu;
  uint64_t cpu_request_milli = 0;
  uint64_t cpu_limit_milli = 0;
  uint64_t memory_request_bytes = 0;
  uint64_t memory_limit_bytes = 0;

  friend bool operator==(const ReplicaTerms&, const ReplicaTerms&) = default;
};

// Returns the terms, or every error in the amounts.
Result<ReplicaTerms, api::FieldErrors> terms_of(const objects::ServiceSpec&);

// Returns the tolerations for workload/pool.h. They were checked.
std::vector<workload::Toleration> tolerations_of(const std::vector<objects::Toleration>&);

// Returns every error of the service; none if it can be stored. Whether it fits is the placement's question.
api::FieldErrors check(const objects::Service&);

// The two halves of check(), for objects that run as services do.
api::FieldErrors check_metadata(const objects::Metadata&);
api::FieldErrors check_spec(const objects::ServiceSpec&);

// Returns whether a program can have a variable of this name, and no line of a file of variables is forged.
bool is_env_name(std::string_view);
inline constexpr std::string_view env_name_rule =
    "is not the name of a variable: printable ASCII characters without =, at least one";

// Returns whether it is the name of an object: 1 to 48 of a-z, 0-9 and -, a letter or digit first and last.
bool is_object_name(std::string_view);

// Returns the thousandths of a core that "2", "1.5" or "500m" are.
Result<uint64_t> parse_cores(std::string_view text);

// Returns an amount as a view shows it: "20GB" is "20 GB (18.6 GiB)", "4096MiB" is "4 GiB". A text that is no
// amount of bytes comes back unchanged.
std::string memory_text(const std::string& amount);

}  // namespace carve::fronts
