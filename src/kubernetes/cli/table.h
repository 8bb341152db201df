// A table of texts, and the formats in which a verb prints its result.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace carve::kubernetes::cli {

struct Table {
  std::vector<std::string> headings;
  std::vector<std::vector<std::string>> rows;  // An empty string is shown as "-".
  std::vector<std::string> names = {};         // A name per row, for -o name: "node/n1". May be empty.
  size_t unnamed_rows = 0;                     // Number of rows at the end without a name, such as a sum.
};

enum class Headings : uint8_t { shown, hidden };
// Returns the lines of the table with aligned columns.
std::string table_text(const Table&, Headings = Headings::shown);
// Returns one line per distinct name, in the order of the rows.
std::string names_text(const Table&);

enum class Form { table, wide, json, yaml, name, json_path };

// Prints a JSON document as JSON or YAML.
std::string document_text(const std::string& json, Form);

}  // namespace carve::kubernetes::cli
