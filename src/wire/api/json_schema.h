// JSON Schemas (2020-12) of the API's documents, from the same descriptions that are used to read and write
// them (wire/api/json_type.h). An absent field keeps its default, so no field is required.
#pragma once

#include <string>

#include "wire/api/json.h"

namespace carve::api {

<<<<<<< HEAD
std::string schema(const JsonType&);
=======
template <class T>
inline constexpr bool is_text_map = std::is_same_v<T, std::map<std::string, std::string>>;

// Returns `,"default":VALUE` if there is a default that readers would not assume.
template <class T>
std::string schema_default(const T& value) {
  if constexpr (std::is_same_v<T, bool>)
    return fmt::format(",\"default\":{}", value);
  else if constexpr (std::is_integral_v<T>)
    return value == 0 ? "" : fmt::format(",\"default\":{}", value);
  else if constexpr (std::is_same_v<T, std::string>)
    return value.empty() ? "" : ",\"default\":" + quoted(value);
  else if constexpr (is_word<T>::value)
    return schema_default(text(value));
  else
    return "";
}

// Returns the members of the schema of T, without its braces.
template <class T>
std::string schema_members(const T& value) {
  if constexpr (Row<T>) {
    std::string items;
    fields::each(value, [&](const char*, const auto& field) {
      items += fmt::format("{}{{{}}}", items.empty() ? "" : ",", schema_members(field));
    });
    return fmt::format(R"("type":"array","prefixItems":[{}],"items":false)", items);
  } else if constexpr (Document<T>) {
    std::string properties;
    const auto add = [&](const char* name, const auto& field) {
      properties += fmt::format("{}{}:{{{}}}", properties.empty() ? "" : ",", quoted(key_of<T>(name)),
                                schema_members(field));
    };
    if constexpr (!std::is_empty_v<T>)
      fields::each(value, [&](const char* name, const auto& field) {
        if constexpr (Inlined<std::remove_cvref_t<decltype(field)>>)
          fields::each(field, add);
        else
          add(name, field);
      });
    return fmt::format(R"("type":"object","additionalProperties":false,"properties":{{{}}})", properties);
  } else if constexpr (is_vector<T>::value) {
    using Item = typename T::value_type;
    if constexpr (is_optional<Item>::value)
      return fmt::format(R"("type":"array","items":{{"anyOf":[{{{}}},{{"type":"null"}}]}})",
                         schema_members(typename Item::value_type{}));
    else
      return fmt::format(R"("type":"array","items":{{{}}})", schema_members(Item{}));
  } else if constexpr (is_optional<T>::value) {
    return schema_members(typename T::value_type{});
  } else if constexpr (is_text_map<T>) {
    return R"("type":"object","additionalProperties":{"type":"string"})";
  } else if constexpr (is_map<T>::value) {
    return fmt::format(R"("type":"object","additionalProperties":{{{}}})",
                       schema_members(typename T::mapped_type{}));
  } else if constexpr (Worded<T>) {
    std::string words;
    for (const std::string_view word : Words<T>::words)
      words += (words.empty() ? "" : ",") + quoted(std::string(word));
    return fmt::format(R"("type":"string","enum":[{}])", words);
  } else if constexpr (std::is_same_v<T, bool>) {
    return R"("type":"boolean")" + schema_default(value);
  } else if constexpr (std::is_same_v<T, Bytes> || std::is_same_v<T, Share>) {
    return R"("type":"integer","minimum":0)";
  } else if constexpr (std::is_integral_v<T>) {
    return std::string(R"("type":"integer")") + (std::is_unsigned_v<T> ? R"(,"minimum":0)" : "") +
           schema_default(value);
  } else {
    return R"("type":"string")" + schema_default(value);
  }
}

}  // namespace detail
>>>>>>> history

template <Document T>
std::string schema() {
  return schema(json_type<T>());
}

}  // namespace carve::api
