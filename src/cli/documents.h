// Helpers shared by the verbs that read documents (-f FILE).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/verbs.h"
#include "wire/api/controller.h"

namespace carve::cli {

struct DocumentOptions {
  std::string file;  // Empty if none is given. "-" is standard input.
  std::string dialect = "auto";
};

// Adds -f and --dialect to the verb.
void add_documents(CLI::App* verb, DocumentOptions& options, bool is_required = true);

// Returns the text of the file. If it cannot be read, prints why, sets the exit status and returns no value.
std::optional<std::string> read_documents(Context& context, const std::string& file);

// Returns the options as a query of the API: "dialect=auto".
std::string query_of(const DocumentOptions& options);

void print_warnings(const std::vector<std::string>& warnings);  // On standard error.
// Prints the nodes and devices that a dry run expects for the replicas.
void print_placement(const std::vector<api::ReplicaPlacement>& placement);

}  // namespace carve::cli
