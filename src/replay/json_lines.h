// JSON that somebody else wrote, by nlohmann's parser (its SAX interface), with the line of every value, so
// that a complaint can say where. A tree of at most deepest levels; numbers are whole and not negative, as
// everything is that we count. Reads 60 MB/s and takes about ten times the file's size while it is looked at.
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
  uint64_t number = 0;  // Also of a boolean: 0 or 1.
  std::string text;     // Also of a number that is not whole, or negative: as it was written (`other`).
  std::vector<Json> items;
  std::vector<JsonMember> members;  // Each name once.

  static constexpr unsigned deepest = 16;
  static constexpr size_t max_members = 64;  // Of one object.

  Json();
  ~Json();
  Json(Json&&) noexcept;
  Json& operator=(Json&&) noexcept;
};

struct JsonMember {
  std::string name;
  Json value;
};

// `name`: what complaints begin with.
Outcome<Json> parse_json(std::string_view text, const std::string& name);

}  // namespace carve::replay
