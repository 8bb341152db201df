// JSON values themselves, for files that read or write JSON other than our documents: CDI files, fronts,
// tests.
#pragma once

#include <nlohmann/json.hpp>

#include "wire/api/json.h"

namespace carve::api {

// Values and keys that one text of a caller may have; 256 documents have 15,000. What the API reads strictly
// has no more either.
inline constexpr size_t max_nodes = 20'000;
std::string too_many_nodes();  // The message for a text that has more.

// What a number becomes that is not a whole number of 64 bits: a double, or the text that the document has,
// for a reader to which 0.30 is a decimal number.
enum class Decimals { as_doubles, as_texts };

struct Parsed {
  Json value;
  size_t length = 0;  // Bytes of the text that were read.
  size_t nodes = 0;   // Values and keys.
};

struct ParseError {
  size_t offset = 0;     // Bytes that were read when the error was found.
  std::string field;     // "spec.gpu.memory"; empty: the document itself.
  std::string sentence;  // Names the field.
};

// Reads the object or list that `text` begins with, and leaves the rest. Refuses a key that occurs twice in
// an object, the character NUL (also as an escape), more than max_depth levels, and text that is not UTF-8.
// Never throws and does not recurse.
Result<Parsed, ParseError> parse_leading(std::string_view text, Decimals = Decimals::as_doubles,
                                         size_t nodes = SIZE_MAX);

// As parse_leading(), for a text that is one value; the error is a sentence. A caller whose documents are not
// ours may allow more levels. `nodes`: of a caller's text, max_nodes.
Result<Json, std::string> parse(std::string_view text, Decimals = Decimals::as_doubles,
                                size_t depth = max_depth, size_t nodes = SIZE_MAX);

inline constexpr std::string_view a_text = "a text";  // What an error says was wanted.
// Returns how the value becomes a text, as the end of an error: if a text is wanted and the value is a
// number, true or false. Else "".
const char* way_to_text(const Json& value, std::string_view wanted);

}  // namespace carve::api
