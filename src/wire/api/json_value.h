// JSON values themselves, for those who read or write what is no document of ours: a CDI file, a test.
#pragma once

#include <nlohmann/json.hpp>

#include "wire/api/json.h"

namespace carve::api {

// Text to JSON; the error is a sentence. Never throws. Duplicate keys: the last one wins.
Result<Json, std::string> parse(std::string_view text);

}  // namespace carve::api
