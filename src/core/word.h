// A word of an enumeration in a document. A document may come from a user, or from a store or program of
// another version. So a word that is unknown here is kept, and the document is shown and stored unchanged. An
// absent field and an empty string are the empty word.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/words.h"

namespace carve {

template <Worded E>
class Word {
 public:
  Word() = default;
  Word(E value) : value_(value) {}  // NOLINT(google-explicit-constructor): a value is assigned to a field.

  static Word from(std::string text) {
    Word out;
    out.value_ = parse<E>(text);
    if (!out.value_) out.unknown_ = std::move(text);
    return out;
  }

  // Returns the value, or no value if the word is empty or unknown.
  std::optional<E> value() const { return value_; }
  bool empty() const { return !value_ && unknown_.empty(); }

  friend std::string text(const Word& word) {
    return word.value_ ? std::string(carve::text(*word.value_)) : word.unknown_;
  }
  friend bool operator==(const Word&, const Word&) = default;

 private:
  std::optional<E> value_;
  std::string unknown_;
};

}  // namespace carve
