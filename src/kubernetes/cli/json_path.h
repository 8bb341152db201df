// The part of kubectl's -o jsonpath=TEMPLATE that selects fields of a document:
//
//   {.nodes[0].name}   {.nodes[*].name}   {range .slices[*]}{.pod}{"\\n"}{end}
//
// Text outside of braces is printed as it is. Values of a list are separated by a space. Filters and array
// slices are rejected. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace carve::kubernetes::cli {

// Prints a JSON document with the template. Fails with a message if the template is invalid.
Result<std::string, std::string> json_path_text(const std::string& json, std::string_view path_template);

}  // namespace carve::kubernetes::cli
