// Reads and writes the API's documents. A document is a struct whose fields are those of the JSON object
// (core/fields.h): one declaration is used to write, read and check it.
//
//   struct Mount { std::string path; std::optional<Bytes> size; };   // {"path": "/a", "size_bytes": 5}
//
// A value is a document, a list, a map of values by name, a text, a whole number, true or false, an amount
// (Bytes, Share), a UUID, or an enumeration, which is written as its word (core/words.h). A Word may also be
// unknown (core/word.h). A field that is absent from the JSON keeps its default.
//
// A server reads strictly, because an unknown key is a mistake that the caller should notice. A client reads
// leniently, because a newer agent may send more fields. Errors contain the path and the value:
// `slices[2].memory_bytes: "4GiB" is not a non-negative whole number`. read_all() returns every error of a
// document, read() the first.
//
// Documents of a namespace that declares has_camel_case_fields() have lowerCamelCase names: the field
// `max_surge` is `maxSurge`. A trailing underscore, which avoids a keyword of C++, is removed.
//
// A document for which is_row(document) is declared is written as a list of its fields' values, in their
// order: ["GPU-1a", 5].
//
// The functions that read and write are compiled once, for the description of a document (json_type.h). The
// JSON library's header takes 1.7 s to compile, so a file that works with JSON values itself includes
// json_value.h.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/device.h"
#include "core/fields.h"
#include "core/word.h"
#include "core/words.h"
#include "wire/api/field_error.h"
#include "wire/api/json_type.h"

namespace carve::api {

using Json = nlohmann::ordered_json;

enum class Reading { strict, lenient };

// A limit for hostile input: no document of Carve is nested this deep.
inline constexpr int max_depth = 16;
inline constexpr size_t max_document_bytes = 1 << 20;  // Size of a text with documents.

// Returns the JSON text with a line for each field, or the text itself if it is not JSON.
std::string indented(const std::string& json);

// Returns the text as a JSON string, in quotes.
std::string quoted(const std::string& text);

namespace detail {

// Write the document, or read it and return every error. `type` is the document's.
std::string write(const void* document, const JsonType& type, int indent);
FieldErrors read(std::string_view text, void* document, const JsonType& type, Reading);

}  // namespace detail

// A document, as far as it could be read: a field with an error has its default.
template <class T>
struct PartlyRead {
  T document;
  FieldErrors errors;
};

// Reads a document. An error has the field's path and value.
template <Document T>
PartlyRead<T> read_partly(std::string_view text, Reading reading) {
  PartlyRead<T> out;
  out.errors = detail::read(text, &out.document, json_type<T>(), reading);
  return out;
}

template <Document T>
Result<T, FieldErrors> read_all(std::string_view text, Reading reading) {
  PartlyRead<T> read = read_partly<T>(text, reading);
  if (!read.errors.empty()) return tl::unexpected(std::move(read.errors));
  return std::move(read.document);
}

template <Document T>
Result<T, std::string> read(std::string_view text, Reading reading) {
  auto document = read_all<T>(text, reading);
  if (!document) return tl::unexpected(document.error().front().message);
  return std::move(*document);
}

// Writes a document. With an indent, the text has a line for each field.
template <Document T>
std::string write(const T& document, int indent = -1) {
  return detail::write(&document, json_type<T>(), indent);
}

}  // namespace carve::api

// A document that several files read or write is declared at the end of its header and defined in one source
// file, which is then the only one to compile its functions:
//
//   CARVE_DECLARE_DOCUMENT(api::Slice)
//   CARVE_DEFINE_DOCUMENT(api::Slice)
#define CARVE_DOCUMENT_FUNCTIONS(PREFIX, T)                                      \
  namespace carve::api {                                                         \
  PREFIX template const JsonType& json_type<T>();                                \
  PREFIX template PartlyRead<T> read_partly<T>(std::string_view, Reading);       \
  PREFIX template Result<T, FieldErrors> read_all<T>(std::string_view, Reading); \
  PREFIX template Result<T, std::string> read<T>(std::string_view, Reading);     \
  PREFIX template std::string write<T>(const T&, int);                           \
  }
#define CARVE_DECLARE_DOCUMENT(T) CARVE_DOCUMENT_FUNCTIONS(extern, carve::T)
#define CARVE_DEFINE_DOCUMENT(T) CARVE_DOCUMENT_FUNCTIONS(, carve::T)
