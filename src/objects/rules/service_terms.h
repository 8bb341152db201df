// The amounts of a service as numbers, and the rules for its document. In an objects::ServiceSpec amounts are
// texts, as the user wrote them. Here they are bytes, thousandths of a core and basis points. Both are exact:
// 20GB is 20,000,000,000 bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/amounts.h"
#include "objects/service_object.h"
#include "wire/api/json.h"
#include "workload/pool.h"
#include "workload/service.h"

namespace carve::objects {

inline constexpr size_t max_name_bytes = workload::max_service_name_bytes;  // For an object.
inline constexpr size_t max_env_bytes = 64 << 10;         // Names, values and two bytes per variable.
inline constexpr uint64_t max_cpu_milli = 1'000'000'000;  // A million cores; core::Request has 32 bits.
inline constexpr size_t max_tolerations = 32;
inline constexpr uint32_t max_seconds = 86'400;  // For a period, timeout, deadline or grace period.

// The amounts of each replica. 0 means that nothing is requested or that there is no limit. If only a limit
// is set, the same amount is requested.
struct ReplicaTerms {
  std::optional<Amounts> gpu;
  uint64_t cpu_request_milli = 0;
  uint64_t cpu_limit_milli = 0;
  uint64_t memory_request_bytes = 0;
  uint64_t memory_limit_bytes = 0;

  friend bool operator==(const ReplicaTerms&, const ReplicaTerms&) = default;
};

// Returns the terms. Fails with every error in the amounts.
Result<ReplicaTerms, api::FieldErrors> terms_of(const objects::ServiceSpec&);

// Returns the tolerations for workload/pool.h. They must be valid.
std::vector<workload::Toleration> tolerations_of(const std::vector<objects::Toleration>&);

// Returns every error of the service, or none if it can be stored. Whether it fits is decided by placement.
api::FieldErrors check(const objects::Service&);

// The two halves of check(), for other objects that run as services.
api::FieldErrors check_metadata(const objects::Metadata&);
api::FieldErrors check_spec(const objects::ServiceSpec&);

// Returns why the text cannot name a container image. Empty if it can, or if the text is empty.
std::string image_problem(const std::string& image);

// Returns whether the name is allowed for a variable. Such a name cannot forge a line in a file of variables.
bool is_env_name(std::string_view);
inline constexpr std::string_view env_name_rule =
    "is not a valid variable name: printable ASCII characters without =, at least one";

// Returns whether the text is a valid object name: 1 to 48 characters from a-z, 0-9 and -, with a letter or
// digit first and last.
bool is_object_name(std::string_view);

// Parses "2", "1.5" or "500m" into thousandths of a core.
Result<uint64_t> parse_cores(std::string_view text);

// Formats an amount for display: "20GB" as "20 GB (18.6 GiB)", "4096MiB" as "4 GiB". A text that is not an
// amount of bytes is returned unchanged.
std::string memory_text(const std::string& amount);

}  // namespace carve::objects
