#include "cli/document_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace carve::cli {
namespace {

namespace fs = std::filesystem;

bool is_document(const fs::path& path) {
  const fs::path extension = path.extension();
  return extension == ".json" || extension == ".yaml" || extension == ".yml";
}

std::string too_many(const std::string& folder) {
  return fmt::format("{}: has more than {} files of documents; name fewer folders", folder,
                     max_document_files);
}

// Adds the folder's files of documents, sorted by name. A file that disappears meanwhile is not an error.
template <class Iterator>
Result<void, std::string> add_files(const std::string& folder, std::vector<std::string>& out) {
  std::error_code error;
  std::vector<std::string> found;
  for (Iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code unseen;
    if (!is_document(entry->path()) || entry->is_directory(unseen)) continue;
    if (out.size() + found.size() >= max_document_files) return tl::unexpected(too_many(folder));
    found.push_back(entry->path().string());
  }
  if (error) return tl::unexpected(fmt::format("{}: cannot be read: {}", folder, error.message()));
  if (found.empty()) {
    const bool is_flat = std::is_same_v<Iterator, fs::directory_iterator>;
    return tl::unexpected(fmt::format("{}: the folder has no files *.json, *.yaml or *.yml{}", folder,
                                      is_flat ? "; -R also reads its subfolders" : ""));
  }
  std::ranges::sort(found);
  out.insert(out.end(), found.begin(), found.end());
  return {};
}

}  // namespace

Result<std::vector<std::string>, std::string> document_files(const std::vector<std::string>& named,
                                                             Folders folders) {
  if (std::ranges::count(named, "-") > 1)
    return tl::unexpected(std::string("-f - is given twice, but standard input can be read only once"));
  std::vector<std::string> out;
  for (const std::string& name : named) {
    std::error_code error;
    if (name == "-" || !fs::is_directory(name, error)) {
      out.push_back(name);
      continue;
    }
    const auto added = folders == Folders::only_named
                           ? add_files<fs::directory_iterator>(name, out)
                           : add_files<fs::recursive_directory_iterator>(name, out);
    if (!added) return tl::unexpected(added.error());
  }
  return out;
}

}  // namespace carve::cli
