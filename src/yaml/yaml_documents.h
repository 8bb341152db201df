// YAML documents to JSON texts, typed by the core schema of YAML 1.2. Forms that YAML 1.1 reads differently,
// and forms that JSON does not have, are rejected:
//
//   | in the document      | result                                                        |
//   |----------------------|---------------------------------------------------------------|
//   | "5", '5', a block    | a text                                                        |
//   | true, False          | true or false; yes, no, on, off are texts                     |
//   | 5, +5, 0x1F, 0o17    | a whole number                                                |
//   | 0.30, .5, 1e3        | a number with the digits of the document                      |
//   | 010, 00.5            | rejected: 8 in YAML 1.1, 10 in YAML 1.2                       |
//   | .inf, .nan           | rejected: JSON has no such number                             |
//   | ~, null, nothing     | null                                                          |
//   | a key                | its text; rejected if it is in the mapping twice              |
//   | <<                   | rejected: YAML 1.2 has no merge keys                          |
//   | &a, *a               | a copy; all copies together have at most `room` bytes, and    |
//   |                      | their values count like written ones                          |
//   | !!str 5, !!int 5     | as tagged, if the value fits; other tags are rejected         |
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wire/api/json.h"

namespace carve::yaml {

// Appends the JSON text of each document that is an object to `documents`. Empty documents are left out.
// `room` limits all documents together and is reduced. Errors contain the line, counted from `first_line`.
struct DocumentRoom {
  size_t bytes = 0;
  size_t nodes = 0;  // Values and keys.
};
void read_yaml(std::string_view text, size_t first_line, DocumentRoom& room,
               std::vector<std::string>& documents, api::FieldErrors& errors);

}  // namespace carve::yaml
