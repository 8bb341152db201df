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

<<<<<<< HEAD
// Write the document, or read it and return every error. `type` is the document's.
std::string write(const void* document, const JsonType& type, int indent);
FieldErrors read(std::string_view text, void* document, const JsonType& type, Reading);
=======
template <class T>
struct is_vector : std::false_type {};
template <class T>
struct is_vector<std::vector<T>> : std::true_type {};
template <class T>
struct is_optional : std::false_type {};
template <class T>
struct is_optional<std::optional<T>> : std::true_type {};
template <class T>
struct is_word : std::false_type {};
template <class E>
struct is_word<Word<E>> : std::true_type {};
template <class T>
struct is_map : std::false_type {};  // By name. A map of strings is a special case with shorter errors.
template <class T>
struct is_map<std::map<std::string, T>> : std::bool_constant<!std::is_same_v<T, std::string>> {};

// For writing. Each function fills a value that was null. A reference to a member or an item is valid until
// the next one is added.
void put_object(Json& value);
void put_list(Json& value);
Json& added_member(Json& object, const std::string& name);
Json& added_item(Json& list);
void put(Json& value, bool);
void put(Json& value, uint64_t);
void put(Json& value, int64_t);
void put(Json& value, const std::string&);
void put(Json& value, const std::map<std::string, std::string>&);

// For reading. Each function with an `out` returns null, or the expected kind of value ("a string") if the
// value is of another kind.
bool is_null(const Json& value);
bool is_object(const Json& value);
bool is_list(const Json& value);
const Json* member(const Json& object, const std::string& name);  // Null if there is none.
std::vector<std::string> keys(const Json& object);
size_t items(const Json& list);
const Json& item(const Json& list, size_t index);
const char* get(const Json& value, bool& out);
const char* get(const Json& value, uint64_t& out);
const char* get(const Json& value, int64_t& out);
const char* get(const Json& value, std::string& out);
void get_texts(const Json& value, std::map<std::string, std::string>& out, const std::string& path,
               FieldErrors& errors);

std::string shown(const Json& value);  // The value as the caller wrote it, cut to a line.
void refuse(const Json& value, const char* wanted, const std::string& path, FieldErrors& errors);
void refuse_unknown(const Json& object, const std::set<std::string>& known, const std::string& path,
                    FieldErrors& errors);

template <class T>
concept Row = Document<T> && requires(const T& document) { is_row(document); };
// The fields of a member of this type become fields of the enclosing document. Those with their default are
// not written.
template <class T>
concept Inlined = Document<T> && requires(const T& document) { is_inlined(document); };
template <class T>
concept HasCamelCaseFields = requires(const T& document) { has_camel_case_fields(document); };
std::string camel_case(const char* name);  // "max_surge" -> "maxSurge", "namespace_" -> "namespace"
template <class T>
std::string key_of(const char* name) {
  if constexpr (HasCamelCaseFields<T>) return camel_case(name);
  return name;
}

// These functions handle a complete text. `fill` writes a document into the value, or reads it from the
// value.
std::string written(void (*fill)(Json& value, const void* document), const void* document, int indent);
FieldErrors read(std::string_view text,
                 void (*fill)(const Json& value, void* document, Reading, FieldErrors& errors),
                 void* document, Reading);

template <class T>
void write(Json& value, const T& from);

// Writes the fields of `from` that differ from their defaults as members of `object`.
template <class T, class Outer>
void write_inlined(Json& object, const T& from) {
  const T defaults{};
  std::vector<bool> differs;
  std::apply(
      [&](const auto&... field) {
        std::apply([&](const auto&... as_default) { (differs.push_back(!(field == as_default)), ...); },
                   fields::tie(defaults));
      },
      fields::tie(from));
  size_t i = 0;
  fields::each(from, [&](const char* name, const auto& field) {
    using Field = std::remove_cvref_t<decltype(field)>;
    if (!differs[i++]) return;
    if constexpr (is_optional<Field>::value)
      detail::write(added_member(object, key_of<Outer>(name)), *field);
    else
      detail::write(added_member(object, key_of<Outer>(name)), field);
  });
}

template <class T>
void write(Json& value, const T& from) {
  if constexpr (Row<T>) {
    put_list(value);
    fields::each(from, [&](const char*, const auto& field) { detail::write(added_item(value), field); });
  } else if constexpr (Document<T>) {
    put_object(value);
    if constexpr (!std::is_empty_v<T>)
      fields::each(from, [&](const char* name, const auto& field) {
        using Field = std::remove_cvref_t<decltype(field)>;
        if constexpr (Inlined<Field>) {
          write_inlined<Field, T>(value, field);
        } else if constexpr (is_optional<Field>::value) {
          if (field) detail::write(added_member(value, key_of<T>(name)), *field);
        } else {
          detail::write(added_member(value, key_of<T>(name)), field);
        }
      });
  } else if constexpr (is_optional<T>::value) {
    if (from) detail::write(value, *from);  // Otherwise it stays null.
  } else if constexpr (is_vector<T>::value) {
    put_list(value);
    for (const auto& each : from) detail::write(added_item(value), each);
  } else if constexpr (is_map<T>::value) {
    put_object(value);
    for (const auto& [key, each] : from) detail::write(added_member(value, key), each);
  } else if constexpr (Worded<T> || is_word<T>::value) {
    put(value, std::string(text(from)));
  } else if constexpr (std::is_same_v<T, Bytes>) {
    put(value, from.count);
  } else if constexpr (std::is_same_v<T, Share>) {
    put(value, uint64_t{from.basis_points});
  } else if constexpr (std::is_same_v<T, Uuid>) {
    put(value, text(from));
  } else if constexpr (std::is_unsigned_v<T> && !std::is_same_v<T, bool>) {
    put(value, uint64_t{from});
  } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    put(value, int64_t{from});
  } else {
    put(value, from);
  }
}

template <class T>
void read(const Json& value, T& out, Reading reading, const std::string& path, FieldErrors& errors);

template <Row T>
void read_row(const Json& value, T& out, Reading reading, const std::string& path, FieldErrors& errors) {
  size_t i = 0;
  fields::each(out, [&](const char*, auto&) { ++i; });
  if (!is_list(value) || items(value) != i)
    return refuse(value, fmt::format("a list of {} values", i).c_str(), path, errors);
  i = 0;
  fields::each(out, [&](const char*, auto& field) {
    detail::read(item(value, i), field, reading, fmt::format("{}[{}]", path, i), errors);
    ++i;
  });
}

// Fills `out` from `value` and adds an error for each part that does not fit. An absent field keeps its
// default; std::optional represents "absent" itself.
template <class T>
void read(const Json& value, T& out, Reading reading, const std::string& path, FieldErrors& errors) {
  if constexpr (Row<T>) {
    read_row(value, out, reading, path, errors);
  } else if constexpr (Document<T>) {
    if (!is_object(value)) return refuse(value, "an object", path, errors);
    std::set<std::string> known;
    const auto read_member = [&](const char* name, auto& field) {
      const std::string key = key_of<T>(name);
      if (const Json* found = member(value, key))
        detail::read(*found, field, reading, path.empty() ? key : path + "." + key, errors);
      known.insert(key);
    };
    if constexpr (!std::is_empty_v<T>)
      fields::each(out, [&](const char* name, auto& field) {
        if constexpr (Inlined<std::remove_cvref_t<decltype(field)>>)
          fields::each(field, read_member);
        else
          read_member(name, field);
      });
    if (reading == Reading::strict) refuse_unknown(value, known, path, errors);
  } else if constexpr (is_optional<T>::value) {
    if (is_null(value))
      out.reset();
    else
      detail::read(value, out.emplace(), reading, path, errors);
  } else if constexpr (is_vector<T>::value) {
    if (!is_list(value)) return refuse(value, "a list", path, errors);
    out.clear();
    for (size_t i = 0; i < items(value) && errors.size() < max_field_errors; ++i)
      detail::read(item(value, i), out.emplace_back(), reading, fmt::format("{}[{}]", path, i), errors);
  } else if constexpr (is_map<T>::value) {
    if (!is_object(value)) return refuse(value, "an object", path, errors);
    out.clear();
    for (const std::string& key : keys(value))
      detail::read(*member(value, key), out[key], reading, path.empty() ? key : path + "." + key, errors);
  } else if constexpr (std::is_same_v<T, std::map<std::string, std::string>>) {
    get_texts(value, out, path, errors);
  } else if constexpr (Worded<T>) {
    std::string word;
    if (const char* wanted = get(value, word)) return refuse(value, wanted, path, errors);
    const auto known = parse<T>(word);
    if (!known) return refuse(value, choice(Words<T>::words).c_str(), path, errors);
    out = *known;
  } else if constexpr (is_word<T>::value) {
    std::string word;
    if (const char* wanted = get(value, word)) return refuse(value, wanted, path, errors);
    out = T::from(std::move(word));
  } else if constexpr (std::is_same_v<T, Bytes>) {
    detail::read(value, out.count, reading, path, errors);
  } else if constexpr (std::is_same_v<T, Share>) {
    detail::read(value, out.basis_points, reading, path, errors);
  } else if constexpr (std::is_same_v<T, Uuid>) {
    std::string word;
    if (const char* wanted = get(value, word)) return refuse(value, wanted, path, errors);
    const auto uuid = parse_uuid(word);
    if (!uuid) return refuse(value, "the UUID of a device", path, errors);
    out = *uuid;
  } else if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::string>) {
    if (const char* wanted = get(value, out)) refuse(value, wanted, path, errors);
  } else {
    static_assert(std::is_integral_v<T>, "documents hold no floating point");
    std::conditional_t<std::is_unsigned_v<T>, uint64_t, int64_t> number = 0;
    if (const char* wanted = get(value, number)) return refuse(value, wanted, path, errors);
    if (number > std::numeric_limits<T>::max() || number < std::numeric_limits<T>::min())
      return refuse(value, "a number that fits this field", path, errors);
    out = static_cast<T>(number);
  }
}
>>>>>>> history

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
