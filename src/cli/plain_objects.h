// `carve get` and `carve describe` for kinds of objects that have no columns of their own.
#pragma once

#include <string>
#include <vector>

#include "cli/services.h"
#include "cli/verbs.h"

namespace carve::cli {

extern const std::vector<std::string> plain_heading;

// Returns the cells of an object from its JSON, or why it cannot be read.
Result<std::vector<std::string>, std::string> plain_cells(const std::string& json);

// Prints the named object, or all objects of the kind that match the selector.
void get_plain_objects(Context&, const ObjectName&, const std::string& selector, const std::string& output);
// Prints the object as YAML.
void describe_plain_object(Context&, const ObjectName&);

}  // namespace carve::cli
