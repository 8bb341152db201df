// Helpers shared by the verbs that read documents (-f FILE).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/verbs.h"
#include "wire/api/controller.h"

namespace carve::cli {

struct DocumentOptions {
  std::vector<std::string> files;  // Files, folders, or "-" for standard input. Empty if none is given.
  bool recursive = false;
  std::string dialect = "auto";
};

// Adds -f, -R and --dialect to the verb.
void add_documents(CLI::App* verb, DocumentOptions& options, bool is_required = true);

// One of the files with documents.
struct DocumentFile {
  std::string path;
  std::string text;
  std::string prefix;  // Prefix of messages: "PATH: " if there are several files, otherwise empty.
};

// Reads the files in their order and calls `act` for each one. A file that cannot be read is reported, and
// the others are read; the exit status is then 1.
void for_each_file(Context& context, const DocumentOptions& options,
                   const std::function<void(const DocumentFile&)>& act);

// Calls `act` with the answer about the file, or prints the problem with the file's prefix and sets the exit
// status.
template <class T, class Act>
void answered_for(Context& context, const DocumentFile& file, client::Answer<T> answer, Act act) {
  if (!answer) {
    api::Problem& problem = answer.error();
    problem.detail = file.prefix + (problem.detail.empty() ? problem.title : problem.detail);
  }
  answered(context, answer, act);
}

// Returns the text of the file. If it cannot be read, prints why, sets the exit status and returns no value.
std::optional<std::string> read_documents(Context& context, const std::string& file);

// Returns the options as a query of the API: "dialect=auto".
std::string query_of(const DocumentOptions& options);

void print_warnings(const std::vector<std::string>& warnings);  // On standard error.
// Prints the nodes and devices that a dry run expects for the replicas.
void print_placement(const std::vector<api::ReplicaPlacement>& placement);

}  // namespace carve::cli
