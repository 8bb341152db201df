// What a user applies, split into its documents. JSON is read by the JSON parser alone, because a YAML parser
// refuses JSON's surrogate pairs; YAML is read by yaml_documents.h. A line that begins with `---` ends a
// document in both. A document that begins with `{` (after empty lines and comments) is JSON, and several
// JSON documents may follow each other without a line between them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wire/api/json.h"

namespace carve::fronts {

inline constexpr size_t max_documents = 256;  // Of one text.

// Returns each document of the text as the text of a JSON object: a JSON document as it was written, byte for
// byte, a YAML document with the digits of its numbers unchanged. Returns every error, each with its line, if
// there is one, or if there is no document. In a returned document no key occurs twice, no text has the
// character NUL, and there are at most api::max_depth levels. All documents together have at most
// api::max_nodes values and keys. The text has at most objects::max_document_bytes, and so has the result.
Result<std::vector<std::string>, api::FieldErrors> documents_of(std::string_view text);

// The same, with each document as it was written: comments included, without the line that begins with `---`.
struct SourceDocument {
  std::string json;
  std::string written;
};
Result<std::vector<SourceDocument>, api::FieldErrors> source_documents_of(std::string_view text);

// Returns the JSON text of a document as it was written; the text itself if it is not one document.
std::string json_of(const std::string& written);

}  // namespace carve::fronts
