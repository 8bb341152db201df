// The formats of `-o`, --no-headers and --sort-by, for every verb that lists something: objects, slices and
// devices. The verb gives a JSON document and prints its own table; all other formats are printed here.
#pragma once

#include <string>
#include <vector>

#include "cli/json_path.h"
#include "cli/verbs.h"

namespace carve::cli {

struct CustomColumn {
  std::string heading;
  JsonPath path;
};

struct OutputFormat {
  enum class Kind : uint8_t { table, wide, json, yaml, name, jsonpath, custom_columns };
  Kind kind = Kind::table;
  JsonTemplate json_template;         // For jsonpath.
  std::vector<CustomColumn> columns;  // For custom_columns.

  bool is_table() const { return kind == Kind::table || kind == Kind::wide; }
};

// Parses the value of -o: "wide", "jsonpath={.items[*].metadata.name}", "custom-columns=NAME:.metadata.name".
Result<OutputFormat, std::string> parse_output_format(const std::string& text);

struct OutputOptions {
  std::string format = "table";
  std::string sort_by;
  bool no_headers = false;
};
// Adds -o, --no-headers and --sort-by to the verb, which rejects values that are invalid.
void add_output_options(CLI::App* verb, OutputOptions&);

// The form of a document that is printed.
struct Listing {
  std::string list_key = "items";  // The member with the list. Empty if the document is one object.
  std::function<std::string(const api::Json&)> name;  // Returns "service/a" for an object.
};

// Sorts the list by the path. Amounts of memory are compared as such, and objects without a value are last.
void sort_list(api::Json& list, const JsonPath&);

// Sorts the document as the options request and prints it, unless the format is a table: then returns false.
bool print_document(Context&, const OutputOptions&, api::Json& document, const Listing&);

// Returns the cells of custom columns: "<none>" where the object has no value. Fails if a path finds too many
// values.
Result<std::vector<std::string>, std::string> custom_cells(const OutputFormat&, const api::Json& object);
std::vector<std::string> custom_heading(const OutputFormat&);

// Returns table(heading, rows), without the heading if the options request that.
std::string listed(const OutputOptions&, const std::vector<std::string>& heading,
                   const std::vector<std::vector<std::string>>& rows);

}  // namespace carve::cli
