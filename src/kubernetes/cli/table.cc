#include "kubernetes/cli/table.h"

#include <algorithm>
#include <set>

#include "yaml/yaml_text.h"

namespace carve::kubernetes::cli {
namespace {

// Counts the UTF-8 characters of a cell, which are the width of a column.
size_t width_of(const std::string& cell) {
  return static_cast<size_t>(
      std::ranges::count_if(cell, [](unsigned char byte) { return (byte & 0xC0) != 0x80; }));
}

}  // namespace

std::string table_text(const Table& table, Headings headings) {
  std::vector<std::vector<std::string>> lines{table.headings};
  lines.insert(lines.end(), table.rows.begin(), table.rows.end());
  std::vector<size_t> widths(table.headings.size());
  for (auto& line : lines)
    for (size_t i = 0; i < line.size(); ++i) {
      if (line[i].empty()) line[i] = "-";
      widths[i] = std::max(widths[i], width_of(line[i]));
    }
  if (headings == Headings::hidden) lines.erase(lines.begin());
  std::string out;
  for (const auto& line : lines) {
    std::string row;
    for (size_t i = 0; i < line.size(); ++i)
      row += line[i] + std::string(i + 1 == line.size() ? 0 : widths[i] - width_of(line[i]) + 2, ' ');
    out += row + "\n";
  }
  return out;
}

std::string names_text(const Table& table) {
  std::set<std::string_view> seen;
  std::string out;
  for (const std::string& name : table.names)
    if (seen.insert(name).second) out += name + "\n";
  return out;
}

std::string document_text(const std::string& json, Form form) {
  if (form == Form::json) return api::indented(json) + "\n";
  const auto document = api::parse(json);
  return document ? yaml::yaml_text(*document) : json + "\n";
}

}  // namespace carve::kubernetes::cli
