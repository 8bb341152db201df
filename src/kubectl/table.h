// Rows of texts under headings, and the forms in which a verb prints its result.
#pragma once

#include <string>
#include <vector>

namespace carve::kubectl {

struct Table {
  std::vector<std::string> headings;
  std::vector<std::vector<std::string>> rows;  // An empty text is shown as "-".
};

// Returns the lines, columns aligned.
std::string table_text(const Table&);

enum class Form { table, wide, json, yaml };

// Returns a document (JSON) in the form json or yaml.
std::string document_text(const std::string& json, Form);

}  // namespace carve::kubectl
