// Describes how the values of a C++ type are written in JSON, as data: json_type<T>() returns the description
// of T. Reading, writing and schemas use these descriptions, so that their code is compiled once and not for
// each document.
//
// A description is made from the fields of the struct (core/fields.h) when it is first used, and then kept
// until the program ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/device.h"
#include "core/fields.h"
#include "core/word.h"
#include "core/words.h"

namespace carve::api {

// Amounts and identifiers are also structs, but are written as a single value.
template <class T>
inline constexpr bool is_value =
    std::is_same_v<T, Bytes> || std::is_same_v<T, Share> || std::is_same_v<T, Uuid>;
template <class T>
concept Document = std::is_aggregate_v<T> && std::is_class_v<T> && !is_value<T>;

enum class JsonShape : uint8_t {
  document,     // An object with a member for each field.
  row,          // A list of its fields' values.
  list,         // std::vector
  optional,     // std::optional; null or absent if it has no value.
  map,          // An object with values of one type by name.
  texts,        // std::map of strings. Its errors are shorter than those of other maps.
  enumeration,  // A known word.
  word,         // A word that may be unknown (core/word.h).
  text,         // std::string
  uuid,
  boolean,
  signed_integer,    // Of any size.
  unsigned_integer,  // Of any size.
  amount,            // Bytes or Share, which schemas show without a default.
};

struct JsonType;
using JsonTypeOf = const JsonType& (*)();

struct JsonField {
  std::string key;
  size_t offset;  // In the struct, in bytes.
  JsonTypeOf type;
  const void* omitted = nullptr;  // If not null, the field is not written while it has this value.
};

// Functions of a container for its items. An optional is a container of at most one item.
struct JsonItems {
  JsonTypeOf type = nullptr;
  size_t (*size)(const void* container) = nullptr;
  const void* (*at)(const void* container, size_t index) = nullptr;
  void (*clear)(void* container) = nullptr;
  // Adds an item with its default, and returns it. Only maps have names.
  void* (*add)(void* container, const std::string& name) = nullptr;
  // Calls visit for each item of a map, in the order of names.
  void (*each)(const void* map, void* context,
               void (*visit)(void* context, const std::string& name, const void* item)) = nullptr;
};

// Functions of an enumeration or a word.
struct JsonWords {
  std::span<const std::string_view> known;
  std::string (*text)(const void* value) = nullptr;
  bool (*assign)(void* value, const std::string& word) = nullptr;  // Returns false if it is unknown.
};

struct JsonType {
  JsonShape shape;
  unsigned bytes = 0;              // The size of a number.
  const void* defaults = nullptr;  // A document or row with the default of each field.
  std::vector<JsonField> fields;   // Set for a document or row.
  JsonItems items;                 // Set for a list, an optional or a map.
  JsonWords words;                 // Set for an enumeration or a word.
};

template <class T>
const JsonType& json_type();

namespace detail {

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
struct is_map : std::false_type {};
template <class T>
struct is_map<std::map<std::string, T>> : std::true_type {};

template <class T>
concept Row = Document<T> && requires(const T& document) { is_row(document); };
// The fields of a member of this type become fields of the enclosing document. Those with their default are
// not written.
template <class T>
concept Inlined = Document<T> && requires(const T& document) { is_inlined(document); };
template <class T>
concept HasCamelCaseFields = requires(const T& document) { has_camel_case_fields(document); };

// Adds the field, which is a part of `document`, to the description of the document.
void add_field(JsonType&, const void* document, const char* name, const void* field, JsonTypeOf,
               bool is_camel_case, const void* omitted = nullptr);

template <Document T>
JsonType document_type() {
  const T* const defaults = new T{};
  JsonType out{.shape = Row<T> ? JsonShape::row : JsonShape::document, .defaults = defaults};
  if constexpr (!std::is_empty_v<T>)
    fields::each(*defaults, [&](const char* name, const auto& field) {
      using Field = std::remove_cvref_t<decltype(field)>;
      if constexpr (Inlined<Field>) {
        for (const JsonField& inner : json_type<Field>().fields) {
          const auto* const omitted = static_cast<const char*>(json_type<Field>().defaults) + inner.offset;
          const auto* const at = reinterpret_cast<const char*>(&field) + inner.offset;
          add_field(out, defaults, inner.key.c_str(), at, inner.type, HasCamelCaseFields<T>, omitted);
        }
      } else {
        add_field(out, defaults, name, &field, json_type<Field>, HasCamelCaseFields<T>);
      }
    });
  return out;
}

template <class List>
JsonItems list_items() {
  return {
      .type = json_type<typename List::value_type>,
      .size = [](const void* list) { return static_cast<const List*>(list)->size(); },
      .at = [](const void* list, size_t i) -> const void* { return &(*static_cast<const List*>(list))[i]; },
      .clear = [](void* list) { static_cast<List*>(list)->clear(); },
      .add = [](void* list, const std::string&) -> void* {
        return &static_cast<List*>(list)->emplace_back();
      }};
}

template <class Optional>
JsonItems optional_items() {
  return {.type = json_type<typename Optional::value_type>,
          .size = [](const void* o) { return size_t{static_cast<const Optional*>(o)->has_value()}; },
          .at = [](const void* o, size_t) -> const void* { return &**static_cast<const Optional*>(o); },
          .clear = [](void* o) { static_cast<Optional*>(o)->reset(); },
          .add = [](void* o, const std::string&) -> void* { return &static_cast<Optional*>(o)->emplace(); }};
}

template <class Map>
JsonItems map_items() {
  return {.type = json_type<typename Map::mapped_type>,
          .clear = [](void* map) { static_cast<Map*>(map)->clear(); },
          .add = [](void* map, const std::string& name) -> void* { return &(*static_cast<Map*>(map))[name]; },
          .each =
              [](const void* map, void* context, auto* visit) {
                for (const auto& [name, item] : *static_cast<const Map*>(map)) visit(context, name, &item);
              }};
}

template <Worded E>
JsonWords enumeration_words() {
  return {.known = Words<E>::words,
          .text = [](const void* value) { return std::string(text(*static_cast<const E*>(value))); },
          .assign =
              [](void* value, const std::string& word) {
                const auto known = parse<E>(word);
                if (known) *static_cast<E*>(value) = *known;
                return known.has_value();
              }};
}

template <class W>
JsonWords word_words() {
  return {.text = [](const void* value) { return text(*static_cast<const W*>(value)); },
          .assign =
              [](void* value, const std::string& word) {
                *static_cast<W*>(value) = W::from(word);
                return true;
              }};
}

template <class T>
JsonType make_json_type() {
  using enum JsonShape;
  if constexpr (Document<T>) {
    return document_type<T>();
  } else if constexpr (is_vector<T>::value) {
    return {.shape = list, .items = list_items<T>()};
  } else if constexpr (is_optional<T>::value) {
    return {.shape = optional, .items = optional_items<T>()};
  } else if constexpr (is_map<T>::value) {
    return {.shape = std::is_same_v<typename T::mapped_type, std::string> ? texts : map,
            .items = map_items<T>()};
  } else if constexpr (Worded<T>) {
    return {.shape = enumeration, .words = enumeration_words<T>()};
  } else if constexpr (is_word<T>::value) {
    return {.shape = word, .words = word_words<T>()};
  } else if constexpr (std::is_same_v<T, std::string>) {
    return {.shape = text};
  } else if constexpr (std::is_same_v<T, Uuid>) {
    return {.shape = uuid};
  } else if constexpr (std::is_same_v<T, bool>) {
    return {.shape = boolean};
  } else if constexpr (std::is_same_v<T, Bytes> || std::is_same_v<T, Share>) {
    return {.shape = amount, .bytes = sizeof(T)};
  } else {
    static_assert(std::is_integral_v<T>, "documents hold no floating point");
    return {.shape = std::is_unsigned_v<T> ? unsigned_integer : signed_integer, .bytes = sizeof(T)};
  }
}

}  // namespace detail

// Returns the description of T. The reference is valid until the program ends.
template <class T>
const JsonType& json_type() {
  // Never destroyed, because other threads may still write documents while the program exits.
  static const JsonType* const type = new JsonType(detail::make_json_type<T>());
  return *type;
}

}  // namespace carve::api
