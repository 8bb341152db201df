// Splits a user's text into its documents. JSON is parsed by the JSON parser, because a YAML parser rejects
// JSON's surrogate pairs; yaml_documents.h parses YAML. A line that starts with `---` ends a document of
// either kind. A document that starts (after empty lines and comments) with `{` and a key in double quotes is JSON,
// and several JSON documents may follow each other without a separator line. `{a: 1}` is YAML.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wire/api/json.h"

namespace carve::yaml {

inline constexpr size_t max_documents = 256;  // In one text.

// Returns each document of the text as the text of a JSON object: a JSON document is returned byte for byte
// as it was written, and a YAML document keeps the digits of its numbers. Fails with every error, each with
// its line if known; a text without a document is an error. A returned document has no duplicate keys, no NUL
// character in a text, and at most api::max_depth levels. All documents together have at most api::max_nodes
// values and keys. The text and the result have at most api::max_document_bytes each.
Result<std::vector<std::string>, api::FieldErrors> documents_of(std::string_view text);

// A document with its original text, including comments but without the line that starts with `---`.
struct SourceDocument {
  std::string json;
  std::string written;
};
Result<std::vector<SourceDocument>, api::FieldErrors> source_documents_of(std::string_view text);

// Returns the JSON text of the document `written`, or `written` itself if it is not exactly one document.
std::string json_of(const std::string& written);

}  // namespace carve::yaml
