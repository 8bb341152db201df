// The fields of a struct, with their names. Documents, files and tables have exactly the fields that a struct
// declares, so a new field is declared only once.
//
//   struct Mount { std::string path; Bytes size; };
//   fields::each(mount, [](const char* name, auto& field) { ... });   // "path", "size_bytes"
//
// The name ends with the field's unit: _bytes for Bytes, _bp (basis points) for Share. A trailing underscore,
// which avoids a keyword of C++, is removed.
//
// C++20 has no reflection, so this uses three properties of the language. The number of fields is the largest
// number of initialisers that the struct accepts. A structured binding gives references to them. The name of
// a field is part of the text of a template argument that points to it (__PRETTY_FUNCTION__; GCC 12 and Clang
// 16 are tested). A struct must be an aggregate without base classes and arrays, with at most 32 fields.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/bytes.h"
#include "base/share.h"

namespace carve::fields {
namespace detail {

// Converts to a field of any type. Used only in unevaluated expressions.
struct Any {
  template <class T>
    requires(!std::is_pointer_v<T> && !std::is_same_v<T, std::nullptr_t>)
  constexpr operator T() const {
    __builtin_unreachable();
  }
};

template <class T, class... Initialisers>
consteval size_t count() {
  if constexpr (requires { T{Initialisers{}..., Any{}}; })
    return count<T, Initialisers..., Any>();
  else
    return sizeof...(Initialisers);
}

// An object whose fields have addresses but no values.
template <class T>
union Storage {
  constexpr Storage() : nothing(0) {}
  constexpr ~Storage() {}
  char nothing;
  T object;
};
template <class T>
inline Storage<T> storage;

template <class T>
struct FieldPointer {
  const T* at;
};
template <class T>
FieldPointer(const T*) -> FieldPointer<T>;

template <FieldPointer... P>
consteval std::string_view text_of() {
  return __PRETTY_FUNCTION__;
}

template <class T>
inline constexpr std::string_view unit = "";
template <>
inline constexpr std::string_view unit<Bytes> = "_bytes";
template <>
inline constexpr std::string_view unit<Share> = "_bp";
template <class T>
inline constexpr std::string_view unit<std::optional<T>> = unit<T>;

// References to fields. Unlike std::tuple it compiles in a time that is linear in their number.
template <size_t I, class T>
struct Ref {
  T& field;
};
template <class Indexes, class... T>
struct Refs;
template <size_t... I, class... T>
struct Refs<std::index_sequence<I...>, T...> : Ref<I, T>... {};
template <class... T>
constexpr auto refs(T&... fields) {
  return Refs<std::index_sequence_for<T...>, T...>{{fields}...};
}

}  // namespace detail

// Returns the number of fields of a struct.
template <class T>
inline constexpr size_t count = detail::count<std::remove_cv_t<T>>();

// Returns references to the fields, in the order of their declaration.
// clang-format off
template <class T>
constexpr auto tie(T& object) {
  constexpr size_t n = count<T>;
  static_assert(n >= 1 && n <= 32, "a struct with fields has 1 to 32 of them");
  if constexpr (n == 1) { auto& [m1] = object; return detail::refs(m1); }
  else if constexpr (n == 2) { auto& [m1, m2] = object; return detail::refs(m1, m2); }
  else if constexpr (n == 3) { auto& [m1, m2, m3] = object; return detail::refs(m1, m2, m3); }
  else if constexpr (n == 4) { auto& [m1, m2, m3, m4] = object; return detail::refs(m1, m2, m3, m4); }
  else if constexpr (n == 5) { auto& [m1, m2, m3, m4, m5] = object; return detail::refs(m1, m2, m3, m4, m5); }
  else if constexpr (n == 6) { auto& [m1, m2, m3, m4, m5, m6] = object; return detail::refs(m1, m2, m3, m4, m5, m6); }
  else if constexpr (n == 7) { auto& [m1, m2, m3, m4, m5, m6, m7] = object; return detail::refs(m1, m2, m3, m4, m5, m6, m7); }
  else if constexpr (n == 8) { auto& [m1, m2, m3, m4, m5, m6, m7, m8] = object; return detail::refs(m1, m2, m3, m4, m5, m6, m7, m8); }
  else if constexpr (n == 9) { auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9] = object; return detail::refs(m1, m2, m3, m4, m5, m6, m7, m8, m9); }
  else if constexpr (n == 10) { auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10] = object; return detail::refs(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10); }
  else if constexpr (n == 11) { auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11] = object; return detail::refs(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11); }
  else if constexpr (n == 12) { auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12] = object; return detail::refs(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12); }
  else if constexpr (n == 13) { auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13] = object; return detail::refs(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13); }
  else if constexpr (n == 14) { auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14] = object; return detail::refs(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14); }
  else if constexpr (n == 15) { auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15] = object; return detail::refs(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15); }
  else if constexpr (n == 16) { auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16] = object; return detail::refs(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16); }
  else if constexpr (n == 17) { auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17] = object; return detail::refs(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17); }
  else if constexpr (n == 18) { auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18] = object; return detail::refs(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18); }
  else if constexpr (n == 19) { auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19] = object; return detail::refs(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19); }
  else if constexpr (n == 20) { auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20] = object; return detail::refs(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20); }
  else if constexpr (n == 21) { auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21] = object; return detail::refs(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21); }
  else if constexpr (n == 22) { auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22] = object; return detail::refs(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22); }
  else if constexpr (n == 23) { auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23] = object; return detail::refs(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23); }
  else if constexpr (n == 24) { auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24] = object; return detail::refs(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24); }
  else if constexpr (n == 25) { auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25] = object; return detail::refs(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25); }
  else if constexpr (n == 26) { auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26] = object; return detail::refs(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26); }
  else if constexpr (n == 27) { auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27] = object; return detail::refs(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27); }
  else if constexpr (n == 28) { auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28] = object; return detail::refs(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28); }
  else if constexpr (n == 29) { auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28, m29] = object; return detail::refs(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28, m29); }
  else if constexpr (n == 30) { auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28, m29, m30] = object; return detail::refs(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28, m29, m30); }
  else if constexpr (n == 31) { auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28, m29, m30, m31] = object; return detail::refs(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28, m29, m30, m31); }
  else if constexpr (n == 32) { auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28, m29, m30, m31, m32] = object; return detail::refs(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23, m24, m25, m26, m27, m28, m29, m30, m31, m32); }
}
// clang-format on

// Returns field I of what tie() returned.
template <size_t I, class T>
constexpr T& get(const detail::Ref<I, T>& ref) {
  return ref.field;
}

namespace detail {

template <class T, size_t I>
using Field = std::remove_cvref_t<decltype(get<I>(tie(std::declval<T&>())))>;

// Returns the names that a text of pointers to N fields contains. Each begins with the name of its type, and
// the name of the field is before its last brace and after the last separator.
template <size_t N>
consteval auto find_names(std::string_view text) {
  std::array<std::string_view, N> out;
  for (size_t i = N; i-- > 0; text = text.substr(0, text.rfind("FieldPointer<"))) {
    size_t brace = text.rfind('}');
    while (text[brace - 1] == '}') --brace;  // The other one ends the list.
    const size_t end = text.find_last_not_of(')', brace - 1) + 1;
    const size_t begin = text.find_last_of(":.", end) + 1;
    out[i] = text.substr(begin, text.find_last_not_of('_', end - 1) + 1 - begin);
  }
  return out;
}

// The names of the fields of T, each with its unit and a terminating zero. One text contains all of them, so
// that the compiler makes one function for a struct and not one for each field.
template <class T, size_t... I>
consteval auto declared_names(std::index_sequence<I...>) {
  constexpr auto fields = tie(storage<T>.object);
  return find_names<sizeof...(I)>(text_of<FieldPointer{&get<I>(fields)}...>());
}

template <class T, size_t... I>
consteval auto make_names(std::index_sequence<I...> all) {
  constexpr auto declared = declared_names<T>(all);
  constexpr size_t longest = std::max({(declared[I].size() + unit<Field<T, I>>.size())...});
  std::array<std::array<char, longest + 1>, sizeof...(I)> out{};
  const std::array<std::string_view, sizeof...(I)> units{unit<Field<T, I>>...};
  for (size_t i = 0; i < out.size(); ++i)
    std::copy(units[i].begin(), units[i].end(),
              std::copy(declared[i].begin(), declared[i].end(), out[i].begin()));
  return out;
}

template <class T>
inline constexpr auto names = make_names<T>(std::make_index_sequence<fields::count<T>>());

}  // namespace detail

// Returns the name of field I, including its unit.
template <class T, size_t I>
inline constexpr const char* name = detail::names<std::remove_cv_t<T>>[I].data();

// Calls visit(name, field) for each field, in the order of their declaration.
template <class T, class Visit>
constexpr void each(T& object, Visit visit) {
  const auto all = tie(object);
  [&]<size_t... I>(std::index_sequence<I...>) {
    (visit(name<T, I>, get<I>(all)), ...);
  }(std::make_index_sequence<fields::count<T>>());
}

}  // namespace carve::fields
