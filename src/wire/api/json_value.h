// JSON values themselves, for files that read or write JSON other than our documents: CDI files and tests.
#pragma once

#include <nlohmann/json.hpp>

#include "wire/api/json.h"

namespace carve::api {

// Text to JSON; the error is a sentence. Never throws. Duplicate keys: the last one wins.
Result<Json, std::string> parse(std::string_view text);

}  // namespace carve::api
