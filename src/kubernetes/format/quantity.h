// Kubernetes quantities (k8s.io/apimachinery, resource.Quantity): "4Gi", "2k", "0.5", "1e3", "500m". The
// API server rewrites them: a limit of 2000 arrives as "2k".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace carve::kubernetes {

// Returns the number if it is whole and from 0 to 2^63 - 1, otherwise no value.
std::optional<uint64_t> parse_quantity(std::string_view text);

// Returns the suffix if it can only belong to an amount of bytes: Ki and above, and M and above, because no
// count on a node is that large. Empty otherwise.
std::string_view byte_suffix(std::string_view text);

// Returns a whole number of MiB as Kubernetes writes it: "4Gi", "4097Mi". `bytes` must be a multiple of 1
// MiB.
std::string quantity_of_bytes(uint64_t bytes);

}  // namespace carve::kubernetes
