#include "cli/documents.h"

#include <algorithm>

#include "cli/document_files.h"
#include "cli/services.h"
#include "objects/object.h"
#include "os/input_file.h"
#include "wire/api/percent.h"

namespace carve::cli {

void add_documents(CLI::App* verb, DocumentOptions& options, bool is_required) {
  verb->add_option("-f,--file", options.files,
                   "File or folder with documents, or - for standard input; may be repeated")
      ->required(is_required)
      ->allow_extra_args(false)
      ->type_name("FILE");
  verb->add_flag("-R,--recursive", options.recursive, "Also read the subfolders of a folder");
  verb->add_option("--dialect", options.dialect, "Format of the documents")
      ->check(CLI::IsMember({"auto", "carve", "eas", "ack", "vke", "hami", "kubernetes"}))
      ->capture_default_str();
}

std::optional<std::string> read_documents(Context& context, const std::string& file) {
  auto text = os::read_input(file, api::max_document_bytes);
  if (text) return std::move(*text);
  fmt::print(stderr, "carve: {}\n", text.error());
  context.status = context.problem_status;
  return std::nullopt;
}

void for_each_file(Context& context, const DocumentOptions& options,
                   const std::function<void(const DocumentFile&)>& act) {
  const auto files =
      document_files(options.files, options.recursive ? Folders::with_subfolders : Folders::only_named);
  if (!files) {
    fmt::print(stderr, "carve: {}\n", files.error());
    context.status = context.problem_status;
    return;
  }
  for (const std::string& path : *files)
    if (auto text = read_documents(context, path))
      act({.path = path, .text = std::move(*text), .prefix = files->size() > 1 ? path + ": " : ""});
}

std::string query_of(const DocumentOptions& options) {
  return fmt::format("dialect={}", api::percent_encoded(options.dialect));
}

void print_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) print_warning(warning);
}

// Returns the memory on each of the devices, or one amount if all are equal.
std::string memory_of(const api::ReplicaPlacement& at) {
  std::vector<std::string> out;
  for (const uint64_t bytes : at.memory_bytes) out.emplace_back(text(Bytes{bytes}));
  if (std::ranges::count(at.memory_bytes, at.memory_bytes.empty() ? 0 : at.memory_bytes.front()) !=
      static_cast<std::ptrdiff_t>(at.memory_bytes.size()))
    return fmt::format("{}", fmt::join(out, " and "));
  return fmt::format("{}{}", out.empty() ? "" : out.front(), out.size() > 1 ? " on each" : "");
}

void print_placement(const std::vector<api::ReplicaPlacement>& placement) {
  for (const api::ReplicaPlacement& at : placement)
    if (at.node.empty())
      fmt::print("  replica {}: waits; {}\n", at.replica, harmless(at.message));
    else
      fmt::print("  replica {}: node {}, device {}, {}\n", at.replica, harmless(at.node),
                 fmt::join(at.devices, ", "), memory_of(at));
}

}  // namespace carve::cli
