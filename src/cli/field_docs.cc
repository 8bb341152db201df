#include "cli/field_docs.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "cli/suggestions.h"
#include "cli/terminal.h"

namespace carve::cli {
namespace {

constexpr std::string_view list_of = "list of ";

// Returns Markdown as plain text: without code marks, with the texts of links.
std::string plain(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '`' || (text[at] == '\\' && text.substr(at + 1).starts_with('|'))) continue;
    const size_t middle = text[at] == '[' ? text.find("](", at) : std::string_view::npos;
    const size_t end = text.find(')', middle);
    if (middle != std::string_view::npos && end != std::string_view::npos &&
        text.substr(at + 1, middle - at - 1).find('[') == std::string_view::npos) {
      out += text.substr(at + 1, middle - at - 1);
      at = end;
      continue;
    }
    out += text[at];
  }
  return out;
}

std::string trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(' ') - first + 1));
}

// Returns the cells of "| a | b |". "\|" does not separate cells.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> out;
  size_t begin = 1;
  for (size_t at = 1; at < line.size(); ++at)
    if (line[at] == '|' && line[at - 1] != '\\') {
      out.push_back(trimmed(line.substr(begin, at - begin)));
      begin = at + 1;
    }
  return out;
}

FieldDoc field_of(const std::vector<std::string>& cells) {
  FieldDoc out{.name = plain(cells[0]), .type = plain(cells[1]), .meaning = plain(cells.back())};
  if (out.type.starts_with(list_of)) {
    out.is_list = true;
    out.type = out.type.substr(list_of.size());
  }
  if (cells.size() == 4) out.otherwise = plain(cells[2]);
  return out;
}

}  // namespace

FieldDocs parse_fields_page(std::string_view page) {
  constexpr std::string_view structure_mark = "### ", kind_mark = "## ", status_mark = "`status`: [";
  FieldDocs out;
  std::string kind;
  StructureDoc* structure = nullptr;
  for (size_t at = 0; at < page.size();) {
    const size_t end = std::min(page.find('\n', at), page.size());
    const std::string_view line = page.substr(at, end - at);
    at = end + 1;
    if (line.starts_with(structure_mark)) {
      structure = &out.structures[std::string(line.substr(structure_mark.size()))];
    } else if (line.starts_with(kind_mark)) {
      kind = line.substr(kind_mark.size());
      structure = nullptr;
      if (objects::parse_kind(kind)) out.kinds[kind];
    } else if (line.starts_with(status_mark)) {
      out.status_types[kind] = line.substr(status_mark.size(), line.find(']') - status_mark.size());
    } else if (line.starts_with("| `") && structure != nullptr) {
      const auto cells = cells_of(line);
      if (cells.size() == 3 || cells.size() == 4) structure->fields.push_back(field_of(cells));
    } else if (!line.empty() && !line.starts_with('|')) {
      const auto known = out.kinds.find(kind);
      std::string* const about = structure != nullptr       ? &structure->about
                                 : known != out.kinds.end() ? &known->second
                                                            : nullptr;
      if (about != nullptr) *about += (about->empty() ? "" : " ") + plain(line);
    }
  }
  return out;
}

const FieldDocs& field_docs() {
  static const FieldDocs docs = parse_fields_page(fields_page);
  return docs;
}

std::vector<FieldDoc> fields_of_kind(const FieldDocs& docs, objects::Kind kind) {
  const std::string name(objects::text_of(kind).kind);
  const auto other = docs.status_types.find(name);
  const std::string status = other == docs.status_types.end() ? name + "Status" : other->second;
  std::vector<FieldDoc> out{{.name = "apiVersion", .type = "string", .meaning = "carve.dev/v1"},
                            {.name = "kind", .type = "string", .meaning = name},
                            {.name = "metadata",
                             .type = "Metadata",
                             .meaning = "The object's name, namespace, labels and account."},
                            {.name = "spec", .type = name + "Spec", .meaning = "What the user requests."}};
  if (docs.structures.contains(status))
    out.push_back({.name = "status",
                   .type = status,
                   .meaning = "What the controller observes; ignored in a document."});
  return out;
}

Result<NamedField, std::string> find_field(const FieldDocs& docs, const std::string& path) {
  const size_t dot = path.find('.');
  const std::string word = path.substr(0, dot);
  const auto kind = objects::parse_kind(word);
  if (!kind) return tl::unexpected(unknown_kind(word));
  NamedField out{.kind = *kind};
  std::vector<FieldDoc> fields = fields_of_kind(docs, *kind);
  for (size_t at = dot; at < path.size();) {
    const size_t end = std::min(path.find('.', at + 1), path.size());
    // "workers[]" and "workers[0]" name the same field as "workers".
    const std::string name = path.substr(at + 1, std::min(path.find('[', at), end) - at - 1);
    at = end;
    const auto found = std::ranges::find(fields, name, &FieldDoc::name);
    if (found == fields.end()) {
      std::vector<std::string> names;
      for (const FieldDoc& field : fields) names.push_back(field.name);
      const std::string place = out.path.empty() ? word : word + "." + out.path, near = nearest(name, names);
      if (names.empty())
        return tl::unexpected(fmt::format("{}: has no fields; it is a {}", harmless(place), out.field.type));
      return tl::unexpected(
          fmt::format("{}: has no field '{}'; {}its fields are {}", harmless(place), harmless(name),
                      near.empty() ? "" : fmt::format("did you mean '{}'? ", near), fmt::join(names, ", ")));
    }
    out.field = *found;
    out.path += (out.path.empty() ? "" : ".") + name;
    const auto structure = docs.structures.find(out.field.type);
    fields = structure == docs.structures.end() ? std::vector<FieldDoc>() : structure->second.fields;
  }
  return out;
}

}  // namespace carve::cli
