// Random secrets, and the hashes under which they are stored. A stolen database contains no usable secret.
#pragma once

#include <string>
#include <string_view>

#include "core/failure.h"

namespace carve::controller {

// Returns 32 random bytes in base64url without padding (RFC 4648, section 5): 43 characters.
Outcome<std::string> random_secret();

// Returns the SHA-256 of the text, in hex.
std::string sha256_hex(std::string_view text);

}  // namespace carve::controller
