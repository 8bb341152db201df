// JSON values themselves, for files that read or write JSON other than our documents: CDI files and tests.
#pragma once

#include <nlohmann/json.hpp>

#include "wire/api/json.h"

namespace carve::api {

// Returns the text as JSON, or a sentence. A key that an object has twice is an error.
Result<Json, std::string> parse(std::string_view text);

}  // namespace carve::api
