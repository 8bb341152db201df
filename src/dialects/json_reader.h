// Reads the members of a JSON document and records which ones were read; the others are reported as having no
// effect.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "objects/error_list.h"
#include "wire/api/json_value.h"

namespace carve::dialects {

// Returns the value as in the document, cut to one line.
std::string shown_json(const api::Json& value);

// A member and its path, or no member.
struct JsonMember {
  const api::Json* value = nullptr;
  std::string path;

  explicit operator bool() const { return value != nullptr; }
};

class JsonReader {
 public:
  JsonReader(const api::Json& root, objects::ErrorList& errors) : root_(root), errors_(errors) {
    entered_.insert(&root);
  }

  JsonMember root() const { return {.value = &root_, .path = ""}; }

  // Returns the object or list. Reports an error if the member has another type. Returns no member if `of` is
  // none.
  JsonMember object(const JsonMember& of, const std::string& key);
  JsonMember list(const JsonMember& of, const std::string& key);
  // Returns an item of a list, which must be an object.
  JsonMember item(const JsonMember& list, size_t index);

  // Returns a member and marks it as read. The key "rolling_strategy.max_surge" may be written as nested
  // objects, as one key, or split at some of its dots.
  JsonMember value(const JsonMember& of, const std::string& key);
  // Like value(), but for a list, whose items are marked as read.
  JsonMember list_value(const JsonMember& of, const std::string& key);

  // Returns the member with exactly this key, which may contain dots.
  JsonMember named(const JsonMember& of, const std::string& key);

  // Returns the member's value. Reports an error if it has another type. Returns no value if it is missing or
  // after an error.
  std::optional<uint64_t> whole(const JsonMember&, uint64_t low, uint64_t high = UINT64_MAX);
  // Like whole(), but the number may also be written as 4.0, "4" or "4.0".
  std::optional<uint64_t> whole_as_text(const JsonMember&, uint64_t low, uint64_t high = UINT64_MAX);
  std::string text(const JsonMember&);                // Empty if missing or after an error.
  std::vector<std::string> texts(const JsonMember&);  // The texts of a list.

  // Returns all members of an object of texts and marks them as read.
  std::map<std::string, std::string> members(const JsonMember& object);

  // Returns a message for each member that was not read.
  std::vector<std::string> without_effect() const;

 private:
  static JsonMember member(const JsonMember& of, const std::string& key);
  JsonMember nested(const JsonMember& of, const std::string& key);
  JsonMember entered(JsonMember, bool fits, const char* wanted);
  void refuse(const JsonMember&, const std::string& wanted);
  void collect(const api::Json& value, const std::string& path, std::vector<std::string>& out) const;

  const api::Json& root_;
  objects::ErrorList& errors_;
  std::set<const api::Json*> entered_;  // Objects and lists of which members were read.
  std::set<const api::Json*> read_;
};

}  // namespace carve::dialects
