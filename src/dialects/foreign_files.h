// Recognizes files of other tools that are not documents: Compose files, and the files of Helm charts and
// kustomize.
#pragma once

#include <optional>
#include <string_view>

#include "wire/api/field_error.h"

namespace carve::dialects {

// Returns an error that names the tool and explains how to get its manifests, or no value for any other file.
std::optional<api::FieldError> foreign_file_problem(std::string_view json);

// Like the function above, for a text that is not valid YAML because it is a template of a Helm chart.
std::optional<api::FieldError> helm_template_problem(std::string_view text);

}  // namespace carve::dialects
