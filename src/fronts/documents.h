// What a user applies, as documents: JSON or YAML, several of them separated by lines of `---`. Each document
// is returned as JSON text, so every reader behind this one reads JSON. A document that is JSON is returned
// byte for byte, and never passes through the YAML parser.
//
// YAML has the types of its core schema, version 1.2: an unquoted scalar is null, true or false, a number or
// a text; a quoted scalar is a text. What other parsers read differently is refused with its line: a number
// with a leading zero (010 is 8 in YAML 1.1 and 10 in 1.2), a key that is there twice, the merge key `<<`, a
// tag of an application. Aliases are expanded up to `max_document_nodes` values in all.
//
// A text with a NUL byte and bytes that are not UTF-8 are refused in both.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "wire/api/field_error.h"

namespace carve::fronts {

inline constexpr size_t max_documents = 100;
inline constexpr size_t max_document_nodes = 20'000;

Result<std::vector<std::string>, api::FieldErrors> documents_of(std::string_view text);

}  // namespace carve::fronts
