// The parser of JSONPath templates (json_path.h).
#include <fmt/format.h>

#include "cli/json_path_filter.h"

namespace carve::cli {
namespace {

using api::Json;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Returns the character that a backslash and `c` stand for.
char after_backslash(char c) { return c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c; }

// Reads a template from left to right. After an error, `error` is set and the other functions do nothing of
// consequence: the caller returns the error.
class TemplateParser {
 public:
  explicit TemplateParser(std::string_view text) : text_(text) {}

  Result<JsonTemplate, std::string> parse();
  Result<JsonPath, std::string> parse_path_only();

 private:
  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  bool take(std::string_view word);
  void skip_spaces();
  void fail(const std::string& message);
  bool has_failed() const { return !error_.empty(); }

  void read_parts(JsonTemplate& out, size_t depth);
  bool read_braces(JsonTemplate& out, size_t depth);  // Returns whether they end a range.
  JsonPath read_path(size_t depth);
  void read_brackets(JsonPath& path, size_t depth);
  void read_filter(JsonPath& path, size_t depth);
  FilterSide read_side(size_t depth);
  Comparison read_comparison();
  PathName read_name();
  PathName read_quoted_name();
  std::string read_quoted();
  std::optional<int64_t> read_index();
  Json read_number();

  std::string_view text_;
  size_t at_ = 0;
  std::string error_;
};

bool TemplateParser::take(std::string_view word) {
  if (!text_.substr(std::min(at_, text_.size())).starts_with(word)) return false;
  at_ += word.size();
  return true;
}

void TemplateParser::skip_spaces() {
  while (!at_end() && is_space(peek())) ++at_;
}

void TemplateParser::fail(const std::string& message) {
  if (!has_failed()) error_ = fmt::format("{}, at character {} of '{}'", message, at_ + 1, text_);
}

Result<JsonTemplate, std::string> TemplateParser::parse() {
  JsonTemplate out;
  read_parts(out, 0);
  if (has_failed()) return tl::unexpected(error_);
  return out;
}

Result<JsonPath, std::string> TemplateParser::parse_path_only() {
  const bool has_brace = take("{");
  skip_spaces();
  JsonPath path = read_path(0);
  skip_spaces();
  if (has_brace && !take("}")) fail("'}' is missing");
  if (!at_end()) fail(fmt::format("unexpected '{}'", peek()));
  if (has_failed()) return tl::unexpected(error_);
  return path;
}

void TemplateParser::read_parts(JsonTemplate& out, size_t depth) {
  while (!has_failed() && !at_end()) {
    if (take("{")) {
      if (read_braces(out, depth)) return;
      continue;
    }
    const size_t end = std::min(text_.find('{', at_), text_.size());
    out.push_back({.kind = TemplatePart::Kind::text, .text = std::string(text_.substr(at_, end - at_))});
    at_ = end;
  }
  if (depth > 0) fail("{end} of a {range} is missing");
}

bool TemplateParser::read_braces(JsonTemplate& out, size_t depth) {
  const auto is_word = [&](std::string_view word) {
    const size_t after = at_ + word.size();
    return text_.substr(at_).starts_with(word) && after < text_.size() &&
           (is_space(text_[after]) || text_[after] == '}');
  };
  skip_spaces();
  if (is_word("end")) {
    at_ += 3;
    skip_spaces();
    if (!take("}")) fail("'}' is missing");
    if (depth == 0) fail("{end} without a {range}");
    return true;
  }
  if (is_word("range")) {
    at_ += 5;
    skip_spaces();
    TemplatePart part{.kind = TemplatePart::Kind::range, .path = read_path(0)};
    skip_spaces();
    if (!take("}")) fail("'}' is missing");
    if (depth == max_template_depth)
      fail(fmt::format("more than {} ranges in each other", max_template_depth));
    if (!has_failed()) read_parts(part.body, depth + 1);
    out.push_back(std::move(part));
    return false;
  }
  while (!has_failed() && !take("}")) {
    if (at_end()) return fail("'}' is missing"), false;
    if (peek() == '"' || peek() == '\'')
      out.push_back({.kind = TemplatePart::Kind::text, .text = read_quoted()});
    else
      out.push_back({.kind = TemplatePart::Kind::path, .path = read_path(0)});
    skip_spaces();
  }
  return false;
}

JsonPath TemplateParser::read_path(size_t depth) {
  JsonPath path;
  const size_t start = at_;
  if (take("$"))
    path.starts_at_root = true;
  else if (!take("@") && peek() != '.' && peek() != '[' && !at_end())
    path.steps.push_back({.kind = PathStep::Kind::names, .names = {read_name()}});
  while (!has_failed() && !at_end()) {
    if (take("..")) {
      path.steps.push_back({.kind = PathStep::Kind::descendants});
      if (take("*"))
        path.steps.push_back({.kind = PathStep::Kind::every});
      else if (peek() != '[')
        path.steps.push_back({.kind = PathStep::Kind::names, .names = {read_name()}});
    } else if (take(".")) {
      if (take("*"))
        path.steps.push_back({.kind = PathStep::Kind::every});
      else if (peek() != '[' && peek() != '}' &&
               !at_end())  // "{.}" is the whole value, and ".['a']" is a name.
        path.steps.push_back({.kind = PathStep::Kind::names, .names = {read_name()}});
    } else if (take("[")) {
      read_brackets(path, depth);
    } else {
      break;
    }
  }
  if (at_ == start) fail("a path is missing");
  return path;
}

PathName TemplateParser::read_name() {
  std::string name;
  const auto ends = [](char c) {
    return is_space(c) || std::string_view(".,[]$@{}()=!<>'\"").find(c) != std::string_view::npos;
  };
  while (!at_end() && !ends(peek())) {
    if (peek() == '\\' && at_ + 1 < text_.size()) ++at_;
    name += text_[at_++];
  }
  if (name.empty()) fail("a field name is missing");
  return {.name = name};
}

std::string TemplateParser::read_quoted() {
  const char quote = text_[at_++];
  std::string out;
  while (!at_end() && peek() != quote) {
    if (peek() == '\\' && at_ + 1 < text_.size()) {
      out += after_backslash(text_[at_ + 1]);
      at_ += 2;
    } else {
      out += text_[at_++];
    }
  }
  if (at_end())
    fail(fmt::format("the closing {} is missing", quote));
  else
    ++at_;
  return out;
}

PathName TemplateParser::read_quoted_name() {
  const char quote = text_[at_++];
  PathName out;
  std::vector<std::string> parts(1);
  for (; !at_end() && peek() != quote; ++at_) {
    const bool is_escape = peek() == '\\' && at_ + 1 < text_.size();
    if (is_escape) ++at_;
    out.name += text_[at_];
    if (text_[at_] == '.' && !is_escape)
      parts.emplace_back();
    else
      parts.back() += text_[at_];
  }
  if (at_end())
    fail(fmt::format("the closing {} is missing", quote));
  else
    ++at_;
  if (parts.size() > 1) out.nested = std::move(parts);
  return out;
}

// Returns no value if there is no number.
std::optional<int64_t> TemplateParser::read_index() {
  constexpr size_t max_digits = 9;
  skip_spaces();
  const size_t start = at_;
  const bool is_negative = take("-");
  int64_t value = 0;
  size_t digits = 0;
  for (; !at_end() && is_digit(peek()) && digits <= max_digits; ++at_, ++digits)
    value = value * 10 + (peek() - '0');
  if (digits > max_digits) fail("an index has too many digits");
  if (digits == 0) return at_ = start, std::nullopt;
  skip_spaces();
  return is_negative ? -value : value;
}

void TemplateParser::read_brackets(JsonPath& path, size_t depth) {
  skip_spaces();
  if (take("?")) return read_filter(path, depth);
  PathStep step;
  if (take("*")) {
    step.kind = PathStep::Kind::every;
  } else if (peek() == '\'' || peek() == '"') {
    do {
      skip_spaces();
      if (peek() != '\'' && peek() != '"') return fail("a quoted name is missing");
      step.names.push_back(read_quoted_name());
      skip_spaces();
    } while (!has_failed() && take(","));
  } else {
    step.kind = PathStep::Kind::indexes;
    step.first = read_index();
    if (take(":")) {
      step.kind = PathStep::Kind::range;
      step.last = read_index();
      if (take(":")) step.stride = read_index().value_or(1);
      if (step.stride < 1) return fail("the stride must be at least 1");
    } else if (!step.first) {
      return fail("expected an index, '*', a quoted name or ?(...)");
    } else {
      step.indexes.push_back(*step.first);
      while (take(",")) {
        const auto next = read_index();
        if (!next) return fail("an index is missing");
        step.indexes.push_back(*next);
      }
    }
  }
  skip_spaces();
  if (!take("]")) fail("']' is missing");
  path.steps.push_back(std::move(step));
}

void TemplateParser::read_filter(JsonPath& path, size_t depth) {
  if (depth == max_template_depth)
    return fail(fmt::format("more than {} filters in each other", max_template_depth));
  if (!take("(")) return fail("'(' is missing after '?'");
  PathFilter filter;
  skip_spaces();
  filter.left = read_side(depth + 1);
  skip_spaces();
  filter.comparison = read_comparison();
  skip_spaces();
  if (filter.comparison != Comparison::exists) filter.right = read_side(depth + 1);
  skip_spaces();
  if (peek() == '&' || peek() == '|')
    return fail("a filter has one comparison; '&&' and '||' are not supported");
  if (!take(")")) return fail("')' is missing");
  skip_spaces();
  if (!take("]")) fail("']' is missing");
  path.steps.push_back(
      {.kind = PathStep::Kind::filter, .filter = std::make_shared<const PathFilter>(std::move(filter))});
}

Comparison TemplateParser::read_comparison() {
  constexpr std::pair<std::string_view, Comparison> words[] = {
      {"==", Comparison::equal},    {"!=", Comparison::unequal}, {"<=", Comparison::at_most},
      {">=", Comparison::at_least}, {"<", Comparison::less},     {">", Comparison::greater}};
  for (const auto& [word, comparison] : words)
    if (take(word)) return comparison;
  return Comparison::exists;
}

Json TemplateParser::read_number() {
  const size_t start = at_;
  while (!at_end() && (is_digit(peek()) || std::string_view("+-.eE").find(peek()) != std::string_view::npos))
    ++at_;
  Json value = Json::parse(text_.substr(start, at_ - start), nullptr, /*allow_exceptions=*/false);
  if (!value.is_number()) {
    at_ = start;
    fail("a number is invalid");
    return {};
  }
  return value;
}

FilterSide TemplateParser::read_side(size_t depth) {
  if (peek() == '"' || peek() == '\'') return {.is_literal = true, .literal = read_quoted()};
  if (peek() == '-' || is_digit(peek())) return {.is_literal = true, .literal = read_number()};
  constexpr std::pair<std::string_view, int> words[] = {{"true", 1}, {"false", 0}, {"null", -1}};
  for (const auto& [word, value] : words)
    if (take(word)) return {.is_literal = true, .literal = value < 0 ? Json() : Json(value == 1)};
  if (peek() != '@' && peek() != '$' && peek() != '.')
    return fail("expected @.FIELD or a value in a filter"), FilterSide{};
  return {.path = read_path(depth)};
}

std::string too_long() { return fmt::format("the expression has more than {} bytes", max_template_bytes); }

}  // namespace

Result<JsonTemplate, std::string> parse_template(std::string_view text) {
  if (text.size() > max_template_bytes) return tl::unexpected(too_long());
  if (text.empty())
    return tl::unexpected(std::string("the expression is empty; write a path such as {.metadata.name}"));
  if (text.find('{') != std::string_view::npos) return TemplateParser(text).parse();
  auto path = parse_path(text);
  if (!path) return tl::unexpected(path.error());
  return JsonTemplate{{.kind = TemplatePart::Kind::path, .path = std::move(*path)}};
}

Result<JsonPath, std::string> parse_path(std::string_view text) {
  if (text.size() > max_template_bytes) return tl::unexpected(too_long());
  return TemplateParser(text).parse_path_only();
}

}  // namespace carve::cli
