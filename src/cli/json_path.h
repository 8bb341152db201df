// JSONPath as kubectl writes it, for `-o jsonpath=`, `-o custom-columns=`, `--sort-by` and `carve wait`:
//
//   {.metadata.name}   {.items[*].status.phase}   {.spec.command[0]}   {.items[-1:]}   {..memory}
//   {.items[?(@.status.phase=="Running")].metadata.name}   {.metadata.labels['carve\.dev/team', 'app']}
//   {range .items[*]}{.metadata.name}{"\n"}{end}
//
// A path that an object does not have finds nothing and is not an error. All functions are pure.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "wire/api/json.h"

namespace carve::cli {

inline constexpr size_t max_template_bytes = 4096;
inline constexpr size_t max_template_depth = 8;                 // Ranges in ranges, or filters in filters.
inline constexpr size_t max_visited_values = 10'000'000;        // For one object or list.
inline constexpr size_t max_printed_bytes = size_t{256} << 20;  // For one object or list.

// A member name. The quoted name 'a.b' is the member "a.b" or, if there is none, the member "b" of "a".
struct PathName {
  std::string name;
  std::vector<std::string> nested;  // Empty unless the name contains dots.
};

struct PathFilter;

// One step of a path, from each value to some of the values in it.
struct PathStep {
  enum class Kind : uint8_t { names, every, descendants, indexes, range, filter };
  Kind kind = Kind::names;
  std::vector<PathName> names;
  std::vector<int64_t> indexes;        // A negative index counts from the end.
  std::optional<int64_t> first, last;  // The range is [first, last).
  int64_t stride = 1;
  std::shared_ptr<const PathFilter> filter;
};

struct JsonPath {
  bool starts_at_root = false;  // "$.a" in a range or a filter.
  std::vector<PathStep> steps;
};

struct TemplatePart {
  enum class Kind : uint8_t { text, path, range };
  Kind kind = Kind::text;
  std::string text;
  JsonPath path;
  std::vector<TemplatePart> body;  // The repeated part of a range.
};
using JsonTemplate = std::vector<TemplatePart>;

// Parses "{.a}, {.b}". A text without braces is one path. The error is a message.
Result<JsonTemplate, std::string> parse_template(std::string_view text);
// Parses one path, with or without braces and the leading dot: "a.b", ".a.b", "{.a.b}".
Result<JsonPath, std::string> parse_path(std::string_view text);

// Returns the values that the path finds in `root`, in their order. Fails if there are too many.
Result<std::vector<const api::Json*>, std::string> values_at(const JsonPath&, const api::Json& root);
// Prints the template. Several values of one path are separated by spaces.
Result<std::string, std::string> printed(const JsonTemplate&, const api::Json& root);
// Returns a string without quotes, and any other value as JSON.
std::string plain_text(const api::Json& value);

}  // namespace carve::cli
