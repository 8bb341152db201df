#include "kubernetes/cli/json_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "wire/api/json_value.h"

namespace carve::kubernetes::cli {
namespace {

using api::Json;

constexpr unsigned max_ranges = 8;

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

// An expression or literal text of a template.
struct Piece {
  bool is_expression = false;
  std::string text;
};

Result<std::vector<Piece>, std::string> pieces_of(std::string_view path_template) {
  std::vector<Piece> out;
  while (!path_template.empty()) {
    const size_t open = std::min(path_template.find('{'), path_template.size());
    if (open != 0) out.push_back({false, std::string(path_template.substr(0, open))});
    path_template.remove_prefix(open);
    if (path_template.empty()) break;
    size_t end = 1;
    for (bool is_quoted = false; end < path_template.size() && (is_quoted || path_template[end] != '}');
         ++end) {
      if (path_template[end] == '\\')
        ++end;
      else if (path_template[end] == '"')
        is_quoted = !is_quoted;
    }
    if (end >= path_template.size()) return tl::unexpected(std::string("a '{' has no '}'"));
    out.push_back({true, std::string(path_template.substr(1, end - 1))});
    path_template.remove_prefix(end + 1);
  }
  return out;
}

// Returns the values at a path such as .nodes[*].name. An absent member has no value.
Result<std::vector<Json>, std::string> values_at(const Json& from, std::string_view path) {
  const std::string whole(path);
  std::vector<Json> found{from};
  while (!path.empty()) {
    std::vector<Json> next;
    if (path.front() == '.') {
      path.remove_prefix(1);
      const size_t end = std::min(path.find_first_of(".["), path.size());
      const std::string key(path.substr(0, end));
      for (const Json& value : found)
        if (key.empty())
          next.push_back(value);
        else if (value.is_object() && value.contains(key))
          next.push_back(value[key]);
      path.remove_prefix(end);
    } else if (path.front() == '[') {
      const size_t end = path.find(']');
      const std::string_view index = path.substr(1, end == path.npos ? 0 : end - 1);
      size_t number = 0;
      const auto [last, problem] = std::from_chars(index.data(), index.data() + index.size(), number);
      const bool is_number = !index.empty() && problem == std::errc() && last == index.data() + index.size();
      if (end == path.npos || (!is_number && index != "*"))
        return tl::unexpected(fmt::format("'{}': use [N] or [*]", whole));
      for (const Json& value : found) {
        if (!value.is_array()) continue;
        if (is_number && number < value.size()) next.push_back(value[number]);
        if (!is_number) next.insert(next.end(), value.begin(), value.end());
      }
      path.remove_prefix(end + 1);
    } else {
      return tl::unexpected(fmt::format("'{}' is not a path; begin it with '.'", whole));
    }
    found = std::move(next);
  }
  return found;
}

class Printer {
 public:
  explicit Printer(const std::vector<Piece>& pieces) : pieces_(pieces) {}

  // Prints the pieces from `begin` to the end of the enclosing range. Returns the position of that end.
  Result<size_t, std::string> print(const Json& from, size_t begin, unsigned level) {
    for (size_t i = begin; i < pieces_.size(); ++i) {
      const Piece& piece = pieces_[i];
      if (!piece.is_expression) {
        out += piece.text;
      } else if (piece.text == "end") {
        if (level == 0) return tl::unexpected(std::string("{end} without {range}"));
        return i;
      } else if (piece.text.starts_with("range ")) {
        const auto end = print_range(from, i, level);
        if (!end) return end;
        i = *end;
      } else if (piece.text.starts_with('"')) {
        const auto literal = api::parse(piece.text);
        if (!literal || !literal->is_string())
          return tl::unexpected(fmt::format("'{}' is not a string", piece.text));
        out += literal->get<std::string>();
      } else {
        const auto values = values_at(from, piece.text);
        if (!values) return tl::unexpected(values.error());
        for (size_t k = 0; k < values->size(); ++k) out += (k == 0 ? "" : " ") + text_of((*values)[k]);
      }
    }
    if (level != 0) return tl::unexpected(std::string("{range} without {end}"));
    return pieces_.size();
  }

  std::string out;

 private:
  Result<size_t, std::string> print_range(const Json& from, size_t at, unsigned level) {
    if (level >= max_ranges)
      return tl::unexpected(fmt::format("ranges can be nested at most {} deep", max_ranges));
    const auto values = values_at(from, std::string_view(pieces_[at].text).substr(6));
    if (!values) return tl::unexpected(values.error());
    const std::string before = out;
    if (values->empty()) {  // Only to find the end of the range.
      auto end = print(Json(), at + 1, level + 1);
      out = before;
      return end;
    }
    Result<size_t, std::string> end = at;
    for (const Json& value : *values) {
      end = print(value, at + 1, level + 1);
      if (!end) return end;
    }
    return end;
  }

  const std::vector<Piece>& pieces_;
};

}  // namespace

Result<std::string, std::string> json_path_text(const std::string& json, std::string_view path_template) {
  const auto document = api::parse(json);
  if (!document) return tl::unexpected(document.error());
  const auto pieces = pieces_of(path_template);
  if (!pieces) return tl::unexpected(pieces.error());
  Printer printer(*pieces);
  const auto end = printer.print(*document, 0, 0);
  if (!end) return tl::unexpected(end.error());
  return std::move(printer.out);
}

}  // namespace carve::kubernetes::cli
