// The objects of the controller's API, carve.dev/v1: the parts that every kind has. An object has the user's
// request (`spec`), the controller's observations (`status`), and the identification that both share
// (`metadata`). Names are lowerCamelCase. Amounts written by a user are texts with a unit ("4GiB", "30%");
// amounts in a status are whole numbers with the unit in the name (`memoryBytes`, `shareBp`). Times are RFC
// 3339 in UTC.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace carve::objects {

inline constexpr std::string_view api_version = "carve.dev/v1";

// Declares that the documents of this namespace have lowerCamelCase fields (wire/api/json.h).
template <class T>
void has_camel_case_fields(const T&);

struct Metadata {
  std::string name;                                // Lowercase letters, digits and '-'; at most 48 bytes.
  std::string namespace_ = "default";              // Kinds without namespaces ignore it.
  std::map<std::string, std::string> labels;       // For selectors and for groups of an invoice.
  std::map<std::string, std::string> annotations;  // Kept unchanged.
  std::string account;  // The paying account; the default is the owner's user name.
  // The controller sets the fields below; they are ignored in a user's document.
  std::string uid;               // Unique: a later object with the same name has another one.
  uint32_t owner_uid = 0;        // The user who applied the document; its programs run as this user.
  uint32_t generation = 0;       // Rises by one with each change of `spec`.
  std::string resource_version;  // Rises with each change of the object.
  std::string created_at;        // When the object was created.
};

struct Condition {
  std::string type;                  // "Progressing"
  std::string status;                // "True" or "False"
  std::string reason;                // One word: "NoCapacity"
  std::string message;               // A message.
  std::string last_transition_time;  // When `status` changed last.
};

// A document of another system, from which the object was made, byte for byte.
struct Source {
  std::string dialect;   // "eas", "ack", "vke", "hami", "kubernetes"; empty for Carve's own form.
  std::string document;  // Its text.
};

}  // namespace carve::objects
