// `carve get -w`: a list that continues with each change.
#pragma once

#include <string>

#include "cli/output_format.h"
#include "cli/services.h"
#include "cli/verbs.h"

namespace carve::cli {

// Prints each object and then each change, until Ctrl-C, in the format of the options. Continues after a lost connection and a restart of the controller. `query` is the rest of the
// watch's query string, "namespace=&labelSelector=".
void watch_objects(Context& context, const ObjectName& object, const std::string& query,
                   const OutputOptions& output);

}  // namespace carve::cli
