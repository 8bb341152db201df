#include "cli/documents.h"

#include "cli/services.h"
#include "os/input_file.h"
#include "wire/objects/object.h"

namespace carve::cli {

void add_documents(CLI::App* verb, DocumentOptions& options, bool is_required) {
  verb->add_option("-f,--file", options.file, "The file, or - for standard input")
      ->required(is_required)
      ->type_name("FILE");
  verb->add_option("--dialect", options.dialect, "How the documents are written")
      ->check(CLI::IsMember({"auto", "carve", "eas", "ack", "vke", "hami", "kubernetes"}))
      ->capture_default_str();
}

std::optional<std::string> read_documents(Context& context, const std::string& file) {
  auto text = os::read_input(file, objects::max_document_bytes);
  if (text) return std::move(*text);
  fmt::print(stderr, "carve: {}\n", text.error());
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
