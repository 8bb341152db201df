// Structs as rows of tables: each field is a column (core/fields.h). The fields of a nested struct are
// columns with its name as prefix: from_utc_ns. Amounts are integers, enumerations are their words, UUIDs are
// texts. A list or a map has its own table and is not a column. An optional value is NULL if absent.
//
// A struct whose columns differ from its fields declares each_column(value, visit), which calls visit(name,
// part of the value) for each column. Any other type is a column if TextColumn is specialized for it.
#pragma once

#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "core/device.h"
#include "core/fields.h"
#include "core/words.h"
#include "sqlite/database.h"

namespace carve::sqlite::rows {

// How a value is stored as a text: `static std::string text(const T&)`, and `static bool read(std::string,
// T&)`, which returns false if the text is invalid.
template <class T>
struct TextColumn {};

namespace detail {

template <class T>
concept StoredAsText = requires(const T& value) { TextColumn<T>::text(value); };
template <class T>
concept HasColumns = requires(T& value) { each_column(value, [](const char*, auto&&) {}); };

template <class T>
inline constexpr bool is_table = false;
template <class T>
inline constexpr bool is_table<std::vector<T>> = true;
template <class K, class V>
inline constexpr bool is_table<std::map<K, V>> = true;

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

template <class T>
inline constexpr bool is_number =
    std::is_integral_v<T> || std::is_same_v<T, Bytes> || std::is_same_v<T, Share>;
template <class T>
inline constexpr bool is_text =
    std::is_same_v<T, std::string> || std::is_same_v<T, Uuid> || Worded<T> || StoredAsText<T>;

// Calls visit(name, type of the value) for each column of a value of type T.
template <class T, class Visit>
void visit_columns(const std::string& name, const Visit& visit) {
  if constexpr (is_optional<T>) {
    visit_columns<typename T::value_type>(name, visit);
  } else if constexpr (is_number<T> || is_text<T>) {
    visit(name, std::type_identity<T>{});
  } else if constexpr (HasColumns<T>) {
    T value{};
    each_column(value, [&](const char* column, auto&& part) {
      visit_columns<std::remove_cvref_t<decltype(part)>>(column, visit);
    });
  } else if constexpr (!is_table<T>) {
    [&]<size_t... I>(std::index_sequence<I...>) {
      (visit_columns<std::remove_cvref_t<decltype(fields::get<I>(fields::tie(std::declval<T&>())))>>(
           name.empty() ? fields::name<T, I> : name + "_" + fields::name<T, I>, visit),
       ...);
    }(std::make_index_sequence<fields::count<T>>());
  }
}

}  // namespace detail

// Returns the quoted names of the columns of T: "id", "from_utc_ns", ...
template <class T>
std::vector<std::string> columns() {
  std::vector<std::string> out;
  detail::visit_columns<T>("", [&](const std::string& name, auto) { out.push_back('"' + name + '"'); });
  return out;
}

// Returns the columns with their types, for CREATE TABLE.
template <class T>
std::string declarations() {
  std::string out;
  detail::visit_columns<T>("", [&]<class V>(const std::string& name, std::type_identity<V>) {
    out +=
        fmt::format("{}\"{}\" {}", out.empty() ? "" : ", ", name, detail::is_number<V> ? "INTEGER" : "TEXT");
  });
  return out;
}

// Binds the values of all columns, in order.
template <class T>
void bind(Statement& s, const T& value) {
  if constexpr (detail::is_optional<T>) {
    if (value)
      bind(s, *value);
    else
      detail::visit_columns<T>("", [&](const std::string&, auto) { s.bind_null(); });
  } else if constexpr (std::is_same_v<T, Bytes>) {
    s << value.count;
  } else if constexpr (std::is_same_v<T, Share>) {
    s << value.basis_points;
  } else if constexpr (std::is_integral_v<T> || std::is_same_v<T, std::string>) {
    s << value;
  } else if constexpr (detail::StoredAsText<T>) {
    s << TextColumn<T>::text(value);
  } else if constexpr (detail::is_text<T>) {
    s << std::string(text(value));
  } else if constexpr (detail::HasColumns<const T>) {
    each_column(value, [&](const char*, const auto& part) { bind(s, part); });
  } else if constexpr (!detail::is_table<T>) {
    fields::each(value, [&](const char*, const auto& field) { bind(s, field); });
  }
}

// Reads the values of all columns, starting at `column`, and advances it past the last one. Returns false if
// a text is not a valid value of its field; `wrong` is then that text.
template <class T>
bool read(const Statement& s, int& column, T& value, std::string& wrong) {
  if constexpr (detail::is_optional<T>) {
    if (!s.is_null(column)) return read(s, column, value.emplace(), wrong);
    detail::visit_columns<T>("", [&](const std::string&, auto) { ++column; });
    return true;
  } else if constexpr (std::is_same_v<T, Bytes>) {
    return read(s, column, value.count, wrong);
  } else if constexpr (std::is_same_v<T, Share>) {
    return read(s, column, value.basis_points, wrong);
  } else if constexpr (std::is_integral_v<T>) {
    value = static_cast<T>(s.number(column++));
    return true;
  } else if constexpr (std::is_same_v<T, std::string>) {
    value = s.text(column++);
    if (is_utf8(value)) return true;
    wrong = value;
    return false;
  } else if constexpr (detail::StoredAsText<T>) {
    wrong = s.text(column++);
    return is_utf8(wrong) && TextColumn<T>::read(wrong, value);
  } else if constexpr (detail::is_text<T>) {
    wrong = s.text(column++);
    const auto known = [&] {
      if constexpr (Worded<T>)
        return parse<T>(wrong);
      else
        return parse_uuid(wrong);
    }();
    if (known) value = *known;
    return static_cast<bool>(known);
  } else if constexpr (detail::HasColumns<T>) {
    bool good = true;
    each_column(value, [&](const char*, auto&& part) { good = good && read(s, column, part, wrong); });
    return good;
  } else if constexpr (!detail::is_table<T>) {
    bool good = true;
    fields::each(value, [&](const char*, auto& field) { good = good && read(s, column, field, wrong); });
    return good;
  }
  return true;
}

}  // namespace carve::sqlite::rows
