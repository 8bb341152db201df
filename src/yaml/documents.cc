#include "yaml/documents.h"

#include <algorithm>
#include <boost/locale/utf.hpp>

#include "wire/api/json_value.h"
#include "yaml/yaml_documents.h"

namespace carve::yaml {
namespace {

constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
constexpr std::string_view space = " \t\r\n";

void refuse(api::FieldErrors& errors, const std::string& field, const std::string& message) {
  if (errors.size() < api::max_field_errors)
    errors.push_back({.field = field, .value = "", .message = message});
}

// Returns the number of the line, counted from 1, that contains the byte before `offset`.
size_t line_of(std::string_view text, size_t offset) {
  const std::string_view before = text.substr(0, offset > 0 ? offset - 1 : 0);
  return 1 + static_cast<size_t>(std::ranges::count(before, '\n'));
}

// Returns the position of the first byte that is not valid UTF-8 or is a control character, or npos if there
// is none. yaml-cpp treats the character 4 as the end of its input.
size_t unreadable_byte(std::string_view text) {
  using Utf8 = boost::locale::utf::utf_traits<char>;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  for (const char* at = begin; at != end;) {
    const char* const start = at;
    const auto character = Utf8::decode(at, end);
    const bool is_control =
        (character < ' ' && space.find(*start) == std::string_view::npos) || character == 0x7f;
    if (is_control || character == boost::locale::utf::illegal || character == boost::locale::utf::incomplete)
      return static_cast<size_t>(start - begin);
  }
  return std::string_view::npos;
}

bool is_separator(std::string_view line) {
  return line.starts_with("---") && (line.size() == 3 || space.find(line[3]) != std::string_view::npos);
}

// Returns the position of the section's content, after a separator, space and comment lines.
size_t content_of(std::string_view section) {
  size_t at = is_separator(section) ? 3 : 0;
  while ((at = section.find_first_not_of(space, at)) != std::string_view::npos && section[at] == '#')
    at = section.find('\n', at);
  return std::min(at, section.size());
}

// Returns whether the content of a section is JSON: a list, or an object whose first character is a key's quote
// or the end of the object. YAML's `{a: 1}` has a key without quotes.
bool is_json(std::string_view content) {
  if (content.starts_with('[')) return true;
  const size_t first = content.find_first_not_of(space, 1);
  return content.starts_with('{') &&
         (first == std::string_view::npos || content[first] == '"' || content[first] == '}');
}

// Parses consecutive JSON objects. `offset` is the position of the first one in the whole text.
void read_json(std::string_view text, size_t offset, size_t end, DocumentRoom& room,
               std::vector<std::string>& documents, api::FieldErrors& errors) {
  while (offset < end && documents.size() <= max_documents) {
    if (text[offset] != '{')
      return refuse(
          errors, "",
          fmt::format("line {}: a JSON document must be an object, '{{...}}'; start a YAML document with "
                      "a line '---'",
                      line_of(text, offset + 1)));
    const auto parsed =
        api::parse_leading(text.substr(offset, end - offset), api::Decimals::as_texts, room.nodes);
    if (!parsed)
      return refuse(
          errors, parsed.error().field,
          fmt::format("line {}: {}", line_of(text, offset + parsed.error().offset), parsed.error().message));
    room.nodes -= parsed->nodes;
    documents.emplace_back(text.substr(offset, parsed->length));
    offset = std::min(text.find_first_not_of(space, offset + parsed->length), end);
  }
}

// Returns the section without its separator line.
std::string_view written_in(std::string_view section) {
  if (!is_separator(section)) return section;
  section.remove_prefix(3);
  section.remove_prefix(std::min(section.find_first_not_of(" \t\r"), section.size()));
  if (section.starts_with('\n')) section.remove_prefix(1);
  return section;
}

// Records the original text of each new document of this section. If a section has two YAML documents,
// neither has a text of its own.
void keep_written(std::string_view section, const std::vector<std::string>& documents,
                  std::vector<SourceDocument>& out) {
  const bool has_json = is_json(section.substr(content_of(section)));
  const bool is_one = documents.size() == out.size() + 1;
  while (out.size() < documents.size()) {
    const std::string& json = documents[out.size()];
    out.push_back({.json = json, .written = has_json || !is_one ? json : std::string(written_in(section))});
  }
}

// Parses the part of the text between two separators, which starts in this line.
void read_section(std::string_view text, size_t begin, size_t end, size_t line, DocumentRoom& room,
                  std::vector<std::string>& documents, api::FieldErrors& errors) {
  const std::string_view section = text.substr(begin, end - begin);
  const size_t content = content_of(section);
  if (content == section.size()) return;
  if (is_json(section.substr(content))) return read_json(text, begin + content, end, room, documents, errors);
  if (section[content] == '%')
    return refuse(errors, "",
                  fmt::format("line {}: directives ('%') are not supported; remove the line",
                              line_of(text, begin + content + 1)));
  read_yaml(section, line, room, documents, errors);
}

}  // namespace

Result<std::vector<SourceDocument>, api::FieldErrors> source_documents_of(std::string_view text) {
  api::FieldErrors errors;
  const auto refused = [&](const std::string& message) {
    refuse(errors, "", message);
    return tl::unexpected(errors);
  };
  if (text.size() > api::max_document_bytes)
    return refused(
        fmt::format("the text has {} bytes; it may have at most {}", text.size(), api::max_document_bytes));
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  if (const size_t wrong = unreadable_byte(text); wrong != std::string_view::npos)
    return refused(fmt::format("line {}: the byte 0x{:02x} is not valid UTF-8; escape it or remove it",
                               line_of(text, wrong + 1), static_cast<unsigned char>(text[wrong])));
  std::vector<std::string> documents;
  std::vector<SourceDocument> out;
  DocumentRoom room{.bytes = api::max_document_bytes, .nodes = api::max_nodes};
  size_t line = 1;
  for (size_t begin = 0;
       begin < text.size() && documents.size() <= max_documents && errors.size() < api::max_field_errors;) {
    size_t end = begin;
    do end = std::min(text.find('\n', end), text.size() - 1) + 1;
    while (end < text.size() && !is_separator(text.substr(end, 4)));
    read_section(text, begin, end, line, room, documents, errors);
    if (documents.size() > out.size()) keep_written(text.substr(begin, end - begin), documents, out);
    line += static_cast<size_t>(std::ranges::count(text.substr(begin, end - begin), '\n'));
    begin = end;
  }
  if (!errors.empty()) return tl::unexpected(std::move(errors));
  if (documents.empty())
    return refused("there is no document; write an object with apiVersion, kind and metadata");
  if (documents.size() > max_documents)
    return refused(fmt::format("there are more than {} documents; apply them in parts", max_documents));
  return out;
}

Result<std::vector<std::string>, api::FieldErrors> documents_of(std::string_view text) {
  auto documents = source_documents_of(text);
  if (!documents) return tl::unexpected(std::move(documents.error()));
  std::vector<std::string> out;
  for (SourceDocument& document : *documents) out.push_back(std::move(document.json));
  return out;
}

std::string json_of(const std::string& written) {
  const auto documents = documents_of(written);
  return documents && documents->size() == 1 ? documents->front() : written;
}

}  // namespace carve::yaml
