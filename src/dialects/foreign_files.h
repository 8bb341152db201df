// Files of other tools that are not documents: compose files, and the files of Helm charts and kustomize.
#pragma once

#include <optional>
#include <string_view>

#include "wire/api/field_error.h"

namespace carve::dialects {

// Returns the error that names the tool and how to get its manifests; no value for any other file.
std::optional<api::FieldError> foreign_file_problem(std::string_view json);

// The same for a text that could not be parsed as YAML: a template of a Helm chart.
std::optional<api::FieldError> helm_template_problem(std::string_view text);

}  // namespace carve::dialects
