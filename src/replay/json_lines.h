// Parses untrusted JSON with nlohmann's parser (its SAX interface) and keeps the line of every value for
// errors. The tree has at most `max_levels` levels. Numbers must be non-negative whole numbers, as all
// quantities in a snapshot are. Reads 60 MB/s and takes about ten times the file's size while the tree
// exists.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/failure.h"

namespace carve::replay {

struct JsonMember;

struct Json {
  enum class Kind : uint8_t { null, boolean, number, text, list, object, other };
  Kind kind = Kind::null;
  size_t line = 0;
  uint64_t number = 0;  // For a boolean, 0 or 1.
  std::string text;     // For a number that is negative or not whole (`other`), its text.
  std::vector<Json> items;
  std::vector<JsonMember> members;  // Their names are unique.

  static constexpr unsigned max_levels = 16;
  static constexpr size_t max_members = 64;  // Per object.

  Json();
  ~Json();
  Json(Json&&) noexcept;
  Json& operator=(Json&&) noexcept;
};

struct JsonMember {
  std::string name;
  Json value;
};

// Parses the text. Errors begin with `name`.
Outcome<Json> parse_json(std::string_view text, const std::string& name);

}  // namespace carve::replay
