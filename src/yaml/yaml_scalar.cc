#include "yaml/yaml_scalar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

namespace carve::yaml {
namespace {

bool is_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

// Removes the digits at the start of `rest` and returns them.
std::string_view take_digits(std::string_view& rest) {
  const size_t end = std::min(rest.find_first_not_of("0123456789"), rest.size());
  const std::string_view digits = rest.substr(0, end);
  rest.remove_prefix(end);
  return digits;
}

bool take(std::string_view& rest, std::string_view any_of) {
  if (rest.empty() || any_of.find(rest.front()) == std::string_view::npos) return false;
  rest.remove_prefix(1);
  return true;
}

// Parses 0x1F and 0o17.
Scalar prefixed(std::string_view text) {
  const std::string_view digits = text.substr(2);
  const int base = text[1] == 'x' ? 16 : 8;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (end != digits.data() + digits.size() || error == std::errc::invalid_argument) return {};
  if (error != std::errc())
    return {.type = ScalarType::integer,
            .json = {},
            .message = fmt::format("{} does not fit in 64 bits; use a smaller number", text.substr(0, 40))};
  return {.type = ScalarType::integer, .json = fmt::format("{}", value), .message = {}};
}

// Parses [-+]? digits [. digits] [e [-+]? digits], with a digit before or after the point.
Scalar number(std::string_view text) {
  std::string_view rest = text;
  const bool is_negative = rest.starts_with('-');
  take(rest, "-+");
  const std::string_view whole = take_digits(rest);
  const bool has_point = take(rest, ".");
  const std::string_view decimals = has_point ? take_digits(rest) : std::string_view();
  if (whole.empty() && decimals.empty()) return {};
  const std::string_view exponent = rest;
  if (take(rest, "eE")) {
    take(rest, "-+");
    if (take_digits(rest).empty()) return {};
  }
  if (!rest.empty()) return {};
  const ScalarType type = has_point || !exponent.empty() ? ScalarType::decimal : ScalarType::integer;
  if (whole.size() > 1 && whole.front() == '0') {
    const std::string_view digits = whole.substr(std::min(whole.find_first_not_of('0'), whole.size() - 1));
    return {.type = type,
            .json = {},
            .message = fmt::format(
                "{} starts with 0, which YAML 1.1 and 1.2 read as different numbers; write "
                "{}{} for the number, or '{}' for the text",
                text.substr(0, 40), is_negative ? "-" : "", digits.substr(0, 40), text.substr(0, 40))};
  }
  std::string json = fmt::format("{}{}", is_negative ? "-" : "", whole.empty() ? "0" : whole);
  if (has_point) json += fmt::format(".{}", decimals.empty() ? "0" : decimals);
  json += exponent;
  double value = 0;  // JSON parsers reject numbers outside the range of a double.
  if (std::from_chars(json.data(), json.data() + json.size(), value).ec != std::errc())
    return {.type = type, .json = {}, .message = fmt::format("{} is out of range", text.substr(0, 40))};
  return {.type = type, .json = std::move(json), .message = {}};
}

}  // namespace

Scalar plain_scalar(std::string_view text) {
  if (is_any(text, {"true", "True", "TRUE"}))
    return {.type = ScalarType::boolean, .json = "true", .message = {}};
  if (is_any(text, {"false", "False", "FALSE"}))
    return {.type = ScalarType::boolean, .json = "false", .message = {}};
  const std::string_view unsigned_text = text.substr(text.starts_with('-') || text.starts_with('+') ? 1 : 0);
  if (is_any(unsigned_text, {".inf", ".Inf", ".INF"}) || is_any(text, {".nan", ".NaN", ".NAN"}))
    return {.type = ScalarType::decimal,
            .json = {},
            .message = fmt::format("{} is not supported as a number", text)};
  if (text.starts_with("0x") || text.starts_with("0o")) return prefixed(text);
  return number(text);
}

}  // namespace carve::yaml
