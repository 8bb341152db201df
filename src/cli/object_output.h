// Prints objects for `carve get` from their JSON: all pages of a list as one, JSON or YAML.
#pragma once

#include <string>

#include "client/client.h"

namespace carve::cli {

// Returns the list at `target` ("/v1/services?namespace="), fetched page by page, as one JSON document:
// {"items": [...], "metadata": {...}}.
client::Answer<std::string> whole_list(const client::Client& controller, const std::string& target);

// Returns the JSON text as a YAML document with the same keys and values, or the text itself if it is not
// JSON.
std::string yaml_of(const std::string& json);

}  // namespace carve::cli
