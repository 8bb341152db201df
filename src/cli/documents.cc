#include "cli/documents.h"

#include <fstream>
#include <iostream>
#include <iterator>

#include "cli/services.h"

namespace carve::cli {

void add_documents(CLI::App* verb, DocumentOptions& options, bool is_required) {
  verb->add_option("-f,--file", options.file, "The file, or - for standard input")
      ->required(is_required)
      ->type_name("FILE");
  verb->add_option("--dialect", options.dialect, "How the documents are written")
      ->check(CLI::IsMember({"auto", "carve", "eas", "ack", "vke", "hami", "kubernetes"}))
      ->capture_default_str();
}

std::optional<std::string> read_documents(Context& context, const DocumentOptions& options) {
  if (options.file == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  std::ifstream in(options.file);
  if (in) return std::string(std::istreambuf_iterator<char>(in), {});
  fmt::print(stderr, "carve: {}: cannot be read; name a file, or - for standard input\n", options.file);
  context.status = failed_status;
  return std::nullopt;
}

std::string query_of(const DocumentOptions& options) {
  return fmt::format("dialect={}", percent_encoded(options.dialect));
}

void print_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) fmt::print(stderr, "carve: warning: {}\n", harmless(warning));
}

void print_placement(const std::vector<api::ReplicaPlacement>& placement) {
  for (const api::ReplicaPlacement& at : placement)
    if (at.node.empty())
      fmt::print("  replica {}: waits; {}\n", at.replica, harmless(at.sentence));
    else
      fmt::print("  replica {}: node {}, device {}\n", at.replica, harmless(at.node),
                 fmt::join(at.devices, ", "));
}

}  // namespace carve::cli
