// The options -e and --env-file of `run` and `exec`, with docker's rules: NAME=VALUE sets a variable, and
// NAME without a value takes it from the caller's environment. -e overrides a file.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/failure.h"

namespace carve::cli {

using Variables = std::map<std::string, std::string>;

struct VariableOptions {
  std::vector<std::string> words;  // -e
  std::vector<std::string> files;  // --env-file
};

void add_variable_options(CLI::App* verb, VariableOptions& options);

// Returns the variables of the files and then of the words, of which the last one with a name counts. Fails
// with a message for a name that is empty, has a space or is set by Carve.
Result<Variables, std::string> to_variables(const VariableOptions& options);

// Adds the variables of a file's text: a variable per line; empty lines and lines that begin with '#' are
// ignored. Returns an empty string or the error.
std::string add_file_variables(const std::string& file, const std::string& text, Variables& variables);

// Sets the variables for this process.
Outcome<void> set_variables(const Variables& variables);

}  // namespace carve::cli
