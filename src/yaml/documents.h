// Splits a user's text into its documents. JSON is only parsed by the JSON parser, because a YAML parser
// rejects JSON's surrogate pairs; yaml_documents.h parses YAML. A line that begins with `---` ends a document
// in both. A document that begins with `{` (after empty lines and comments) is JSON, and several JSON
// documents may follow each other without a line between them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wire/api/json.h"

namespace carve::yaml {

inline constexpr size_t max_documents = 256;  // In one text.

// Returns each document of the text as the text of a JSON object: a JSON document as it was written, byte for
// byte, a YAML document with the digits of its numbers unchanged. Otherwise returns every error, with its
// line if there is one; a text without a document is an error. A returned document has no duplicate keys, no
// character NUL in a text, and at most api::max_depth levels. All documents together have at most
// api::max_nodes values and keys. The text has at most api::max_document_bytes, and so has the result.
Result<std::vector<std::string>, api::FieldErrors> documents_of(std::string_view text);

// The same, with each document as it was written: with comments, without the line that begins with `---`.
struct SourceDocument {
  std::string json;
  std::string written;
};
Result<std::vector<SourceDocument>, api::FieldErrors> source_documents_of(std::string_view text);

// Returns the JSON text of a document as it was written, or the text itself if it is not one document.
std::string json_of(const std::string& written);

}  // namespace carve::yaml
