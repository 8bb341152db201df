// What the verbs that read documents (-f FILE) share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/verbs.h"
#include "wire/api/controller.h"

namespace carve::cli {

struct DocumentOptions {
  std::string file;  // Empty: none is given. "-": standard input.
  std::string dialect = "auto";
};

// Adds -f and --dialect to the verb.
void add_documents(CLI::App* verb, DocumentOptions& options, bool is_required = true);

// Returns the text of the file. Without one: prints why it cannot be read, and sets the exit status.
std::optional<std::string> read_documents(Context& context, const std::string& file);

// Returns the options as a query of the API: "dialect=auto".
std::string query_of(const DocumentOptions& options);

void print_warnings(const std::vector<std::string>& warnings);  // On standard error.
// Prints where a dry run expects the replicas.
void print_placement(const std::vector<api::ReplicaPlacement>& placement);

}  // namespace carve::cli
