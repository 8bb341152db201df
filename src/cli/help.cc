#include "cli/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <vector>

namespace carve::cli {
namespace {

constexpr size_t description_column = 30;

// The parts of CLI11's type name: "N:UINT in [1 - 16]", "TEXT:{table,json}".
struct ValueType {
  std::string name;                // "N"; empty if the option does not name its value.
  std::vector<std::string> words;  // "table", "json"
  std::string range;               // "1 to 16"
};

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

bool is_type_of_cli11(std::string_view name) {
  constexpr std::string_view types[] = {"TEXT", "UINT", "INT", "FLOAT", "BOOLEAN"};
  return std::ranges::find(types, name) != std::end(types);
}

ValueType value_type_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  size_t name_end = type.size();  // A name may contain ':', as in "SIZE[:PERCENT]".
  for (const char* check : {":{", ":UINT in", ":INT in", ":FLOAT in"})
    name_end = std::min(name_end, type.find(check));
  ValueType out{.name = type.substr(0, name_end)};
  if (const size_t open = type.find('{'), close = type.rfind('}');
      open != std::string::npos && close != std::string::npos)
    out.words = split(std::string_view(type).substr(open + 1, close - open - 1), ',');
  if (const size_t open = type.find(" in ["), between = type.find(" - "), close = type.rfind(']');
      open != std::string::npos && between != std::string::npos && close != std::string::npos)
    out.range = fmt::format("{} to {}", type.substr(open + 5, between - open - 5),
                            type.substr(between + 3, close - between - 3));
  if (out.name.find(' ') != std::string::npos) out.name = "N";  // "UINT in [1 - 16]"
  if (out.name == "UINT" || out.name == "INT" || out.name == "FLOAT") out.name = "N";
  if (is_type_of_cli11(out.name)) out.name.clear();
  return out;
}

std::string in_capitals(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

// Returns "-o, --output OUTPUT", "--wait[=TIME]" or "NAME...".
std::string left_side(const CLI::Option& option, bool is_positional) {
  const bool is_list = option.get_expected_max() == CLI::detail::expected_max_vector_size;
  if (is_positional) return option.get_name(true) + (is_list ? "..." : "");
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  std::string out = fmt::format("{}", fmt::join(names, ", "));
  if (option.get_name(false, true).find('{') != std::string::npos) return out + "[=TIME]";
  if (option.get_items_expected_max() == 0) return out;
  std::string value = value_type_of(option).name;
  if (value.empty() && !option.get_lnames().empty()) value = in_capitals(option.get_lnames().front());
  return fmt::format("{} {}{}", out, value, is_list ? "..." : "");
}

// Returns "a, b or c".
std::string alternatives(const std::vector<std::string>& words) {
  if (words.size() < 2) return words.empty() ? "" : words.front();
  return fmt::format("{} or {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
}

std::string names_of(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options) names.push_back(option->get_name());
  std::ranges::sort(names);
  return fmt::format("{}", fmt::join(names, ", "));
}

// Returns the description with what CLI11 knows about the value, before the default in brackets.
std::string right_side(const CLI::Option& option) {
  std::string text = option.get_description(), fallback;
  if (const size_t open = text.rfind(" ["); open != std::string::npos && text.ends_with(']')) {
    fallback = text.substr(open);
    text.resize(open);
  } else if (!option.get_default_str().empty()) {
    fallback = fmt::format(" [{}]", option.get_default_str());
  }
  const auto has = [&](const std::string& part) { return text.find(part) != std::string::npos; };
  const ValueType type = value_type_of(option);
  if (!type.words.empty() && !std::ranges::all_of(type.words, has)) text += ": " + alternatives(type.words);
  if (!type.range.empty() && !has(type.range)) text += ", " + type.range;
  if (option.get_required() && !option.get_positional()) text += " (required)";
  if (!option.get_needs().empty()) text += fmt::format(" (only with {})", names_of(option.get_needs()));
  if (!option.get_excludes().empty()) text += fmt::format(" (not with {})", names_of(option.get_excludes()));
  return text + fallback;
}

std::string row(const std::string& left, const std::string& right) {
  const std::string indented = "  " + left;
  const std::string text = wrapped(right, help_columns - description_column, description_column);
  if (right.empty()) return indented + "\n";
  if (indented.size() + 2 > description_column)
    return fmt::format("{}\n{:{}}{}\n", indented, "", description_column, text);
  return fmt::format("{:{}}{}\n", indented, description_column, text);
}

}  // namespace

std::string full_name(const CLI::App& verb) {
  return verb.get_parent() == nullptr ? verb.get_name()
                                      : full_name(*verb.get_parent()) + " " + verb.get_name();
}

std::string wrapped(std::string_view text, size_t width, size_t indent) {
  std::string out;
  size_t column = 0;
  for (const std::string& word : split(text, ' ')) {
    if (column != 0 && column + 1 + word.size() > width) {
      out += fmt::format("\n{:{}}", "", indent);
      column = 0;
    }
    if (column != 0) out += ' ';
    out += word;
    column += word.size() + (column != 0 ? 1 : 0);
  }
  return out;
}

std::string HelpFormatter::make_description(const CLI::App* verb) const {
  return verb->get_name().empty() ? "" : wrapped(verb->get_description(), help_columns, 0) + "\n";
}

std::string HelpFormatter::make_usage(const CLI::App* verb, std::string) const {
  std::string out = fmt::format("\nUsage: {}", full_name(*verb));
  const auto verbs = verb->get_subcommands([](const CLI::App* one) { return !one->get_name().empty(); });
  if (!verbs.empty()) out += verb->get_require_subcommand_min() == 0 ? " [VERB]" : " VERB";
  out += " [OPTIONS]";
  for (const CLI::Option* option : verb->get_options())
    if (option->get_positional())
      out += option->get_required() ? " " + left_side(*option, true)
                                    : fmt::format(" [{}]", left_side(*option, true));
  return out + "\n";
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  return row(left_side(*option, is_positional), right_side(*option));
}

std::string HelpFormatter::make_subcommand(const CLI::App* verb) const {
  return row(verb->get_name(), verb->get_description());
}

}  // namespace carve::cli
