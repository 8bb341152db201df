// Reading and writing the API's documents. A document is a struct that lists its fields once:
//
//   struct Mount { std::string path; std::optional<uint64_t> bytes;
//     static void fields(auto& self, auto&& field) { field("path", self.path); field("bytes", self.bytes); }
//     };
//
// The documents are written, read and checked from that list. A server reads strictly, so that the caller
// gets an error about an unknown key. A client reads leniently, because a newer agent may send more fields.
// Errors name the place and the value: `slices[2].memory_bytes: "4GiB" is not a whole number of bytes`.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.h"

namespace carve::api {

using Json = nlohmann::ordered_json;

enum class Reading { strict, lenient };

// Limits hostile input early; no document of the API is so deep.
inline constexpr int max_depth = 16;

// Parses JSON; the error is a sentence. Never throws. Of duplicate keys the last one wins.
Result<Json, std::string> parse(std::string_view text);

template <class T>
concept Document = requires(T& t) { T::fields(t, [](const char*, auto&) {}); };

namespace detail {

template <class T>
struct is_vector : std::false_type {};
template <class T>
struct is_vector<std::vector<T>> : std::true_type {};
template <class T>
struct is_optional : std::false_type {};
template <class T>
struct is_optional<std::optional<T>> : std::true_type {};

std::string shown(const Json& value);  // The value as the caller wrote it, cut to one line.

}  // namespace detail

template <class T>
Json to_json(const T& value) {
  if constexpr (Document<T>) {
    Json out = Json::object();
    T::fields(value, [&](const char* name, const auto& field) {
      using Field = std::remove_cvref_t<decltype(field)>;
      if constexpr (detail::is_optional<Field>::value) {
        if (field) out[name] = to_json(*field);
      } else {
        out[name] = to_json(field);
      }
    });
    return out;
  } else if constexpr (detail::is_vector<T>::value) {
    Json out = Json::array();
    for (const auto& item : value) out.push_back(to_json(item));
    return out;
  } else {
    return Json(value);
  }
}

// Fills `out` from `value`. Returns false and sets `error` to a sentence if the value does not fit. An absent
// field keeps its default; a std::optional stays empty.
template <class T>
bool from_json(const Json& value, T& out, Reading reading, const std::string& path, std::string& error) {
  const auto refuse = [&](const char* wanted) {
    error = fmt::format("{}: {} is not {}", path.empty() ? "document" : path, detail::shown(value), wanted);
    return false;
  };
  if constexpr (Document<T>) {
    if (!value.is_object()) return refuse("an object");
    std::set<std::string> known;
    bool good = true;
    T::fields(out, [&](const char* name, auto& field) {
      known.insert(name);
      const auto found = value.find(name);
      if (!good || found == value.end()) return;
      good = from_json(*found, field, reading, path.empty() ? name : path + "." + name, error);
    });
    if (!good || reading == Reading::lenient) return good;
    for (const auto& [key, unused] : value.items()) {
      if (known.contains(key)) continue;
      error = fmt::format("{}{}{}: no such field; the fields are {}", path, path.empty() ? "" : ".", key,
                          fmt::join(known, ", "));
      return false;
    }
    return true;
  } else if constexpr (detail::is_optional<T>::value) {
    if (value.is_null()) {
      out.reset();
      return true;
    }
    return from_json(value, out.emplace(), reading, path, error);
  } else if constexpr (detail::is_vector<T>::value) {
    if (!value.is_array()) return refuse("a list");
    out.clear();
    for (size_t i = 0; i < value.size(); ++i)
      if (!from_json(value[i], out.emplace_back(), reading, fmt::format("{}[{}]", path, i), error))
        return false;
    return true;
  } else if constexpr (std::is_same_v<T, std::map<std::string, std::string>>) {
    if (!value.is_object()) return refuse("an object of texts");
    out.clear();
    for (const auto& [key, text] : value.items())
      if (!from_json(text, out[key], reading, path + "." + key, error)) return false;
    return true;
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!value.is_boolean()) return refuse("true or false");
    out = value.template get<bool>();
    return true;
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!value.is_string()) return refuse("a text");
    out = value.template get<std::string>();
    return true;
  } else if constexpr (std::is_unsigned_v<T>) {
    if (!value.is_number_unsigned()) return refuse("a whole number from 0 up");
    const auto number = value.template get<uint64_t>();
    if (number > std::numeric_limits<T>::max()) return refuse("a number that fits this field");
    out = static_cast<T>(number);
    return true;
  } else {
    static_assert(std::is_signed_v<T> && std::is_integral_v<T>, "documents hold no floating point");
    if (!value.is_number_integer() ||
        (value.is_number_unsigned() && value.template get<uint64_t>() > INT64_MAX))
      return refuse("a whole number");
    const auto number = value.template get<int64_t>();
    if (number > std::numeric_limits<T>::max() || number < std::numeric_limits<T>::min())
      return refuse("a number that fits this field");
    out = static_cast<T>(number);
    return true;
  }
}

template <Document T>
Result<T, std::string> read(std::string_view text, Reading reading) {
  const auto json = parse(text);
  if (!json) return tl::unexpected(json.error());
  T out;
  std::string error;
  if (!from_json(*json, out, reading, "", error)) return tl::unexpected(error);
  return out;
}

template <Document T>
std::string write(const T& document) {
  return to_json(document).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace carve::api
