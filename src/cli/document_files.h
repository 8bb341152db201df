// The files that -f names: a file, standard input, or the documents of a folder, as in kubectl.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace carve::cli {

inline constexpr size_t max_document_files = 10'000;  // In all named folders.

enum class Folders : uint8_t { only_named, with_subfolders };

// Returns the files in the order in which they are read. "-" and the names of files are returned unchanged; a
// folder is replaced by its files *.json, *.yaml and *.yml, sorted by name. Symbolic links to folders are not
// followed in a folder. Fails if a folder cannot be read or has no such file, and if "-" is named twice.
Result<std::vector<std::string>, std::string> document_files(const std::vector<std::string>& named, Folders);

}  // namespace carve::cli
