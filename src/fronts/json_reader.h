// A JSON document of which each member is either read, or reported as a member without effect.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fronts/error_list.h"
#include "wire/api/json_value.h"

namespace carve::fronts {

// Returns a value as the document has it, cut to a line.
std::string shown_json(const api::Json& value);

// A member and its path, or no value.
struct JsonMember {
  const api::Json* value = nullptr;
  std::string path;

  explicit operator bool() const { return value != nullptr; }
};

class JsonReader {
 public:
  JsonReader(const api::Json& root, ErrorList& errors) : root_(root), errors_(errors) {
    entered_.insert(&root);
  }

  JsonMember root() const { return {.value = &root_, .path = ""}; }

  // Returns the object or list; reports an error if the member is something else. Without `of` there is none.
  JsonMember object(const JsonMember& of, const std::string& key);
  JsonMember list(const JsonMember& of, const std::string& key);
  // Returns an item of a list that is an object.
  JsonMember item(const JsonMember& list, size_t index);

  // Returns a member that is read: "max_surge", or "rolling_strategy.max_surge" of nested objects or as one
  // key.
  JsonMember value(const JsonMember& of, const std::string& key);

  // Returns the member with exactly this key, which may have dots.
  JsonMember named(const JsonMember& of, const std::string& key);

  // Returns the member's value; reports an error if it is something else. Nothing: there is none, or an
  // error.
  std::optional<uint64_t> whole(const JsonMember&, uint64_t low, uint64_t high = UINT64_MAX);
  std::string text(const JsonMember&);                // Empty: there is none, or an error.
  std::vector<std::string> texts(const JsonMember&);  // Of a list.

  // Returns all members of an object of texts, which are read.
  std::map<std::string, std::string> members(const JsonMember& object);

  // Returns a sentence for each member that was not read.
  std::vector<std::string> without_effect() const;

 private:
  static JsonMember member(const JsonMember& of, const std::string& key);
  JsonMember entered(JsonMember, bool fits, const char* wanted);
  void refuse(const JsonMember&, const std::string& wanted);
  void collect(const api::Json& value, const std::string& path, std::vector<std::string>& out) const;

  const api::Json& root_;
  ErrorList& errors_;
  std::set<const api::Json*> entered_;  // Objects and lists of which the members are read.
  std::set<const api::Json*> read_;
};

}  // namespace carve::fronts
