#include "engines/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "objects/error_list.h"

namespace carve::engines {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_control(char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

// Returns the names of the vendor's parameters that the text assigns, as in `spark.a=1` or `'spark.a': '1'`.
std::vector<std::string> assigned_keys(std::string_view text) {
  constexpr std::string_view prefixes[] = {"emr.", "spark.", "serverless.", "carve."};
  const auto is_of_key = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_';
  };
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_of_key(text[end])) ++end;
    const std::string_view word = text.substr(at, end - at);
    std::string_view behind = text.substr(end);
    if (behind.starts_with('\'') || behind.starts_with('"')) behind.remove_prefix(1);
    behind = trimmed(behind);
    const bool is_key =
        std::ranges::any_of(prefixes, [&](std::string_view p) { return word.starts_with(p); });
    if (is_key && (behind.starts_with('=') || behind.starts_with(':'))) out.emplace_back(word);
    at = std::max(end, at + 1);
  }
  return out;
}

class ParameterReader {
 public:
  explicit ParameterReader(std::string_view text) : rest_(text) {}

  Result<ReadParameters, api::FieldErrors> run() {
    while (!rest_.empty() && errors_.all().size() < api::max_field_errors) {
      const size_t end = rest_.find('\n');
      line_ = rest_.substr(0, end);
      rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
      ++number_;
      if (std::ranges::any_of(line_.substr(0, line_.find_last_not_of('\r') + 1), is_control))
        refuse("must not contain control characters");
      else
        read_line();
    }
    if (out_.values.empty() && errors_.empty() && !lost_gpu_key_.empty())
      errors_.add_message("parameters", lost_gpu_key_,
                          fmt::format("{} is in a comment, and the text sets no parameter; a comment extends "
                                      "to the end of its line, so write each parameter on its own line",
                                      lost_gpu_key_));
    if (!errors_.empty()) return tl::unexpected(errors_.all());
    return std::move(out_);
  }

 private:
  // Parses the statements of the line up to its end or its first error.
  void read_line() {
    while (true) {
      line_ = trimmed(line_);
      if (line_.empty()) return;
      if (line_.front() == '#') return keep_comment();
      if (line_.starts_with("--")) {
        if (line_.starts_with("--conf"))
          refuse("is an option of the command line; write only the parameter, as key=value");
        else
          keep_comment();
        return;
      }
      if (line_.front() == ';' || line_.front() == ',') {
        line_.remove_prefix(1);
      } else if (!(line_.front() == '\'' || line_.front() == '"' ? read_pair() : read_assignment())) {
        return;
      }
    }
  }

  // If a text was pasted as one line, it is a comment from its first # or -- on. Its parameters must not be
  // lost without a warning.
  void keep_comment() {
    const std::vector<std::string> keys = assigned_keys(line_);
    if (keys.empty()) return;
    if (const auto gpu =
            std::ranges::find_if(keys, [](const auto& key) { return key.find("gpu") != key.npos; });
        gpu != keys.end() && lost_gpu_key_.empty())
      lost_gpu_key_ = *gpu;
    out_.warnings.push_back(
        fmt::format("line {}: {}{} in a comment, so {} not set", number_, keys.front(),
                    keys.size() == 1 ? " is" : fmt::format(" and {} more are", keys.size() - 1),
                    keys.size() == 1 ? "it is" : "they are"));
  }

  bool refuse(const std::string& what) {
    const std::string place = fmt::format("line {}", number_);
    errors_.add_message("parameters", std::string(line_),
                        fmt::format("{}: {} {}", place, objects::typed(std::string(line_)), what));
    return false;
  }

  // Parses a quoted text. Returns no value if its quote is not closed in this line.
  std::optional<std::string> read_quoted(std::string_view& at) const {
    const char quote = at.front();
    std::string out;
    for (size_t i = 1; i < at.size(); ++i) {
      if (at[i] == quote) {
        at.remove_prefix(i + 1);
        return out;
      }
      if (at[i] == '\\' && i + 1 < at.size() && (at[i + 1] == quote || at[i + 1] == '\\')) ++i;
      out += at[i];
    }
    return std::nullopt;
  }

  // Parses 'KEY': 'VALUE'.
  bool read_pair() {
    std::string_view at = line_;
    const auto key = read_quoted(at);
    at = trimmed(at);
    if (!key || !at.starts_with(':')) return refuse("is not a pair; write 'key': 'value'");
    at = trimmed(at.substr(1));
    if (at.empty() || (at.front() != '\'' && at.front() != '"'))
      return refuse("has no value in quotes; write 'key': 'value'");
    auto value = read_quoted(at);
    if (!value) return refuse("has a quote that is not closed; write 'key': 'value'");
    at = trimmed(at);
    if (!at.empty() && at.front() != ',' && at.front() != ';' && at.front() != '#' && !at.starts_with("--"))
      return refuse("has text after its value; separate pairs with commas");
    return keep(*key, std::move(*value), at);
  }

  // Returns the length of an unquoted value, which ends at a ; or at a comment preceded by a blank.
  static size_t value_size(std::string_view at, std::string_view comment) {
    for (size_t i = 0; i < at.size(); ++i) {
      if (at[i] == ';') return i;
      if (at.substr(i).starts_with(comment) && (i == 0 || is_blank(at[i - 1]))) return i;
    }
    return at.size();
  }

  // Parses KEY=VALUE or set KEY = VALUE.
  bool read_assignment() {
    std::string_view at = line_;
    constexpr std::string_view word = "set";
    const bool is_set =
        at.size() > word.size() && is_blank(at[word.size()]) &&
        std::ranges::equal(at.substr(0, word.size()), word, [](char a, char b) { return (a | 0x20) == b; }) &&
        !trimmed(at.substr(word.size())).starts_with('=');
    if (is_set) at = trimmed(at.substr(word.size()));
    const size_t equals = at.find('=');
    if (equals == std::string_view::npos)
      return refuse("is not a parameter; write key=value, 'key': 'value' or set key = value");
    const std::string key(trimmed(at.substr(0, equals)));
    at.remove_prefix(equals + 1);
    if (const std::string_view quoted = trimmed(at);
        is_set && (quoted.starts_with('\'') || quoted.starts_with('"'))) {
      std::string_view behind = quoted;
      auto value = read_quoted(behind);
      behind = trimmed(behind);
      if (!value) return refuse("has a quote that is not closed; write set key = 'value'");
      if (!behind.empty() && !behind.starts_with(';') && !behind.starts_with("--"))
        return refuse("has text after its value; separate parameters with ;");
      return keep(key, std::move(*value), behind);
    }
    const size_t size = value_size(at, is_set ? "--" : "#");
    return keep(key, std::string(trimmed(at.substr(0, size))), at.substr(size));
  }

  bool keep(const std::string& key, std::string value, std::string_view behind) {
    if (!is_parameter_key(key))
      return refuse(fmt::format("has no valid parameter name; use 1 to {} bytes without blanks or = ; # ' \"",
                                max_parameter_key_bytes));
    line_ = behind;
    const auto [at, is_new] = out_.values.try_emplace(key, value);
    if (is_new) {
      lines_[key] = number_;
      return true;
    }
    out_.warnings.push_back(
        fmt::format("{} is set in line {} and again in line {}; the last value is used, {}", key, lines_[key],
                    number_, objects::typed(value)));
    at->second = std::move(value);
    lines_[key] = number_;
    return true;
  }

  std::string_view rest_, line_;
  size_t number_ = 0;
  std::string lost_gpu_key_;  // The first such key in a comment.
  ReadParameters out_;
  std::map<std::string, size_t> lines_;  // By key: the line of its last value.
  objects::ErrorList errors_;
};

}  // namespace

bool is_parameter_key(std::string_view key) {
  return !key.empty() && key.size() <= max_parameter_key_bytes && !key.starts_with('-') &&
         std::ranges::none_of(key, [](char c) {
           return is_blank(c) || is_control(c) ||
                  std::string_view("=;#'\"").find(c) != std::string_view::npos;
         });
}

Result<ReadParameters, api::FieldErrors> read_parameters(std::string_view text) {
  if (text.size() > max_parameters_bytes)
    return tl::unexpected(
        api::FieldErrors{{.field = "parameters",
                          .value = "",
                          .message = fmt::format("parameters: {} bytes are too many; use at most {}",
                                                 text.size(), max_parameters_bytes)}});
  return ParameterReader(text).run();
}

}  // namespace carve::engines
