#include "cli/output_format.h"

#include <algorithm>

#include "base/bytes.h"
#include "cli/object_output.h"
#include "wire/api/json_value.h"

namespace carve::cli {
namespace {

using api::Json;
using Kind = OutputFormat::Kind;

constexpr std::pair<std::string_view, Kind> formats[] = {{"table", Kind::table},
                                                         {"wide", Kind::wide},
                                                         {"json", Kind::json},
                                                         {"yaml", Kind::yaml},
                                                         {"name", Kind::name}};
constexpr std::string_view template_prefix = "jsonpath=", columns_prefix = "custom-columns=";

// Returns the parts of "NAME:.a,AGE:.b['c,d']": a comma in brackets, braces or quotes does not separate.
std::vector<std::string> split_columns(std::string_view text) {
  std::vector<std::string> out(1);
  int open = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0)
      quote = c == quote ? '\0' : quote;
    else if (open > 0 && (c == '\'' || c == '"'))
      quote = c;
    else if (c == '[' || c == '{')
      ++open;
    else if (c == ']' || c == '}')
      --open;
    if (c == ',' && open <= 0 && quote == 0)
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}

Result<std::vector<CustomColumn>, std::string> parse_columns(std::string_view text) {
  std::vector<CustomColumn> out;
  for (const std::string& part : split_columns(text)) {
    const size_t colon = part.find(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == part.size())
      return tl::unexpected(fmt::format(
          "'{}' is not a column; write HEADING:PATH, such as NAME:.metadata.name", harmless(part)));
    auto path = parse_path(std::string_view(part).substr(colon + 1));
    if (!path)
      return tl::unexpected(fmt::format("column {}: {}", harmless(part.substr(0, colon)), path.error()));
    out.push_back({harmless(part.substr(0, colon)), std::move(*path)});
  }
  return out;
}

void fail(Context& context, const std::string& message) {
  fmt::print(stderr, "carve: {}\n", message);
  context.status = failed_status;
}

std::vector<Json> objects_of(const Json& document, const Listing& listing) {
  if (listing.list_key.empty()) return {document};
  return document.value(listing.list_key, std::vector<Json>());
}

// Returns a negative number, 0 or a positive number, like strcmp().
int order_of(const Json& a, const Json& b) {
  if (a.is_string() && b.is_string()) {
    const auto x = parse_bytes(a.get_ref<const std::string&>()),
               y = parse_bytes(b.get_ref<const std::string&>());
    if (x && y && *x != *y) return *x < *y ? -1 : 1;
    return a.get_ref<const std::string&>().compare(b.get_ref<const std::string&>());
  }
  return a < b ? -1 : b < a ? 1 : 0;
}

}  // namespace

Result<OutputFormat, std::string> parse_output_format(const std::string& word) {
  const std::string text = word.starts_with('=') ? word.substr(1) : word;  // "-o=json"
  for (const auto& [name, kind] : formats)
    if (text == name) return OutputFormat{.kind = kind};
  if (text.starts_with(template_prefix)) {
    auto parsed = parse_template(std::string_view(text).substr(template_prefix.size()));
    if (!parsed) return tl::unexpected("jsonpath: " + harmless(parsed.error()));
    return OutputFormat{.kind = Kind::jsonpath, .json_template = std::move(*parsed)};
  }
  if (text.starts_with(columns_prefix)) {
    auto columns = parse_columns(std::string_view(text).substr(columns_prefix.size()));
    if (!columns) return tl::unexpected("custom-columns: " + harmless(columns.error()));
    return OutputFormat{.kind = Kind::custom_columns, .columns = std::move(*columns)};
  }
  return tl::unexpected(
      fmt::format("'{}' is not an output format; use table, wide, json, yaml, name, jsonpath=TEMPLATE or "
                  "custom-columns=HEADING:PATH,...",
                  harmless(text)));
}

void add_output_options(CLI::App* verb, OutputOptions& options) {
  verb->add_option("-o,--output", options.format,
                   "Output format: table, wide, json, yaml, name, jsonpath=TEMPLATE or "
                   "custom-columns=HEADING:PATH,...")
      ->check(CLI::Validator(
          [](std::string& text) {
            const auto format = parse_output_format(text);
            return format ? std::string() : format.error();
          },
          "{table,wide,json,yaml,name,jsonpath=,custom-columns=}"))
      ->capture_default_str();
  verb->add_flag("--no-headers", options.no_headers, "Print tables without the heading");
  verb->add_option("--sort-by", options.sort_by, "Sort by a field, such as .metadata.createdAt")
      ->type_name("PATH")
      ->check([](const std::string& text) {
        const auto path = parse_path(text);
        return path ? std::string() : harmless(path.error());
      });
}

void sort_list(Json& list, const JsonPath& path) {
  if (!list.is_array()) return;
  struct Keyed {
    Json key, object;
  };
  std::vector<Keyed> keyed;
  for (Json& object : list) {
    const auto found = values_at(path, object);
    Json key = found && !found->empty() ? *found->front() : Json();
    keyed.push_back({std::move(key), std::move(object)});
  }
  std::ranges::stable_sort(keyed, [](const Keyed& a, const Keyed& b) {
    if (a.key.is_null() || b.key.is_null()) return !a.key.is_null();
    return order_of(a.key, b.key) < 0;
  });
  for (size_t i = 0; i < keyed.size(); ++i) list[i] = std::move(keyed[i].object);
}

std::vector<std::string> custom_heading(const OutputFormat& format) {
  std::vector<std::string> out;
  for (const CustomColumn& column : format.columns) out.push_back(column.heading);
  return out;
}

Result<std::vector<std::string>, std::string> custom_cells(const OutputFormat& format, const Json& object) {
  std::vector<std::string> out;
  for (const CustomColumn& column : format.columns) {
    const auto values = values_at(column.path, object);
    if (!values) return tl::unexpected(fmt::format("column {}: {}", column.heading, values.error()));
    std::vector<std::string> texts;
    for (const Json* value : *values) texts.push_back(harmless(plain_text(*value)));
    out.push_back(texts.empty() ? "<none>" : fmt::format("{}", fmt::join(texts, ",")));
  }
  return out;
}

std::string listed(const OutputOptions& options, const std::vector<std::string>& heading,
                   const std::vector<std::vector<std::string>>& rows) {
  const std::string out = table(heading, rows);
  return options.no_headers ? out.substr(out.find('\n') + 1) : out;
}

bool print_document(Context& context, const OutputOptions& options, Json& document, const Listing& listing) {
  const auto format = parse_output_format(options.format);
  if (!format) return fail(context, format.error()), true;
  if (!options.sort_by.empty() && !listing.list_key.empty() && document.contains(listing.list_key))
    sort_list(document[listing.list_key], parse_path(options.sort_by).value());
  switch (format->kind) {
    case Kind::table:
    case Kind::wide: return false;
    case Kind::json: fmt::print("{}\n", document.dump(2)); return true;
    case Kind::yaml: fmt::print("{}", yaml_of(document.dump())); return true;
    case Kind::name:
      for (const Json& object : objects_of(document, listing))
        fmt::print("{}\n", harmless(listing.name(object)));
      return true;
    case Kind::jsonpath: {
      const auto text = printed(format->json_template, document);
      if (!text) return fail(context, text.error()), true;
      std::fwrite(text->data(), 1, text->size(), stdout);
      return true;
    }
    case Kind::custom_columns: {
      std::vector<std::vector<std::string>> rows;
      for (const Json& object : objects_of(document, listing)) {
        auto cells = custom_cells(*format, object);
        if (!cells) return fail(context, cells.error()), true;
        rows.push_back(std::move(*cells));
      }
      fmt::print("{}", listed(options, custom_heading(*format), rows));
      return true;
    }
  }
  return true;
}

}  // namespace carve::cli
