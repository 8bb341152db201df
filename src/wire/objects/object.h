// The objects of the controller's API, carve.dev/v1: what every kind has. An object is what a user asks for
// (`spec`), what the controller knows of it (`status`), and what both refer to it by (`metadata`). Names are
// lowerCamelCase. Amounts that a user writes are texts with a unit ("4GiB", "30%"), amounts in a status are
// whole numbers with the unit in the name (`memoryBytes`, `shareBp`). Times are RFC 3339 in UTC.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace carve::objects {

inline constexpr std::string_view api_version = "carve.dev/v1";
inline constexpr size_t max_document_bytes = 1 << 20;

// Declares that the documents of this namespace have lowerCamelCase fields (wire/api/json.h).
template <class T>
void has_camel_case_fields(const T&);

struct Metadata {
  std::string name;
  std::string namespace_ = "default";
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::string account;  // Who pays; the default is the owner's user name.
  // The controller sets the fields below; in a document that a user applies they are ignored.
  std::string uid;               // Of this object: another object with the same name has another one.
  uint32_t owner_uid = 0;        // The user who applied the document; its programs run as this user.
  uint32_t generation = 0;       // Rises by one with each change of `spec`.
  std::string resource_version;  // Rises with each change of the object.
  std::string created_at;
};

struct Condition {
  std::string type;     // "Progressing"
  std::string status;   // "True" or "False"
  std::string reason;   // One word: "NoCapacity"
  std::string message;  // A sentence.
  std::string last_transition_time;
};

// A document of another system from which the object was made, byte for byte.
struct Source {
  std::string dialect;  // "eas", "ack", "vke", "hami", "kubernetes"; empty: a document of ours.
  std::string document;
};

}  // namespace carve::objects
