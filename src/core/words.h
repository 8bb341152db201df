// The words of an enumeration, which users, documents and files see instead of its numbers. Each enumeration
// has one table next to its declaration:
//
//   enum class Colour { red, green };
//   template <> struct Words<Colour> {
//     static constexpr const char* kind = "colour";
//     static constexpr std::string_view words[] = {"red", "green"};   // In the order of the values, from 0.
//   };
#pragma once

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/failure.h"

namespace carve {

template <class E>
struct Words;

template <class E>
concept Worded = requires { Words<E>::words; };

// Returns the word of a value.
template <Worded E>
constexpr std::string_view text(E value) {
  return Words<E>::words[static_cast<size_t>(value)];
}

// Returns the value of a word, or no value if it is unknown.
template <Worded E>
constexpr std::optional<E> parse(std::string_view word) {
  const auto* const found = std::ranges::find(Words<E>::words, word);
  if (found == std::end(Words<E>::words)) return std::nullopt;
  return static_cast<E>(found - std::begin(Words<E>::words));
}

// Returns the words as alternatives: "a, b or c".
std::string choice(std::span<const std::string_view> words);

// Returns the value of a word, or a failure that names the known words.
template <Worded E>
Outcome<E> parse_named(std::string_view word) {
  if (const auto value = parse<E>(word)) return *value;
  return failure(FailureKind::invalid_argument, "'{}' is not a known {}; use {}", word.substr(0, 80),
                 Words<E>::kind, choice(Words<E>::words));
}

}  // namespace carve
