// Direct access to JSON values, for files that read or write JSON other than Carve's documents: CDI files,
// dialects, tests.
#pragma once

#include <nlohmann/json.hpp>

#include "wire/api/json.h"

namespace carve::api {

// Limit of values and keys in one text of a caller; 256 documents have 15,000. The limit also applies to
// texts of the API that are read strictly.
inline constexpr size_t max_nodes = 20'000;
std::string too_many_nodes();  // The error message for a text above this limit.

// How a number that is not a 64-bit whole number is represented: as a double, or as the text in the document,
// for readers that treat 0.30 as a decimal number.
enum class Decimals { as_doubles, as_texts };

struct Parsed {
  Json value;
  size_t length = 0;  // Bytes of the text that were read.
  size_t nodes = 0;   // Values and keys.
};

struct ParseError {
  size_t offset = 0;    // Bytes that were read before the error.
  std::string field;    // "spec.gpu.memory". Empty for the document itself.
  std::string message;  // Includes the field.
};

// Reads the object or list at the start of `text`, and ignores the rest. Rejects a key that occurs twice in
// an object, the character NUL (also as an escape), more than max_depth levels, and text that is not UTF-8.
// Never throws and does not recurse.
Result<Parsed, ParseError> parse_leading(std::string_view text, Decimals = Decimals::as_doubles,
                                         size_t nodes = SIZE_MAX);

// Like parse_leading(), but for a text that consists of one value. The error is a message. Callers whose
// documents are not Carve's may allow more levels. `nodes` is max_nodes for text from outside.
Result<Json, std::string> parse(std::string_view text, Decimals = Decimals::as_doubles,
                                size_t depth = max_depth, size_t nodes = SIZE_MAX);

inline constexpr std::string_view a_text = "a string";  // The expected kind in an error message.
// Returns advice on how to write the value, to append to the error, if a string is wanted and the value is a
// number, true or false. Otherwise returns "".
const char* way_to_text(const Json& value, std::string_view wanted);

}  // namespace carve::api
