// Names inside paths and queries of a URL (RFC 3986, section 2).
#pragma once

#include <string>
#include <string_view>

namespace carve::api {

// Returns the text with every reserved byte encoded as %XX, so that a name is exactly one segment of a path
// or one value of a query.
std::string percent_encoded(std::string_view text);

}  // namespace carve::api
