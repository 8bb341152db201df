// How `carve get` prints objects that it has as JSON: all pages of a list as one, JSON or YAML.
#pragma once

#include <string>

#include "client/client.h"

namespace carve::cli {

// Returns the list at `target` ("/v1/services?namespace="), read page by page, as one JSON document:
// {"items": [...], "metadata": {...}}.
client::Answer<std::string> whole_list(const client::Client& controller, const std::string& target);

// Returns the JSON text as a YAML document, with the same keys and values; the text itself if it is no JSON.
std::string yaml_of(const std::string& json);

}  // namespace carve::cli
