// `carve get -w`: a list that continues with each change.
#pragma once

#include <string>

#include "cli/services.h"
#include "cli/verbs.h"

namespace carve::cli {

// Prints each object and then each change, until Ctrl-C, in the form of `output` (table, wide, json, yaml,
// name). Continues after the connection was lost and after the controller was restarted. `query` is the rest
// of the watch's query, "namespace=&labelSelector=".
void watch_objects(Context& context, const ObjectName& object, const std::string& query,
                   const std::string& output);

}  // namespace carve::cli
