// Warnings that accompany a successful response, in the form of Kubernetes' API server: one header line
// `Warning: 299 - "TEXT"` for each (RFC 7234, section 5.5). The client prints them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace carve::api {

inline constexpr std::string_view warning_header = "Warning";
inline constexpr size_t max_warning_bytes = 2048;

// Returns the header's value. Long texts are cut, and control characters become spaces.
std::string warning_value(std::string_view text);

// Returns the text in a header's value, or no value if the header has another form.
std::optional<std::string> warning_text(std::string_view value);

}  // namespace carve::api
